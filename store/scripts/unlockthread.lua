-- prefix, thread, token -> {'ok'} | {'stale'}
local claim = claim_key(ARGV[2])
if redis.call('GET', claim) ~= ARGV[3] then return {'stale'} end
redis.call('DEL', claim)
next_up(ARGV[2]) -- a task may have come meanwhile
return {'ok'}
