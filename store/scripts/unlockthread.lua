-- prefix, thread, token -> {'ok'} | {'stale'}
local claim = claim_key(ARGV[2])
if redis.call('GET', claim) ~= ARGV[3] then return {'stale'} end
redis.call('DEL', claim)
return {'ok'}
