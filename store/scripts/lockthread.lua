-- prefix, thread, token, ttl ms -> {'ok'} | {'busy'}
local claim, token = claim_key(ARGV[2]), ARGV[3]
local holder = redis.call('GET', claim)
if holder == token then return {'ok'} end -- the reply was lost
if holder or redis.call('EXISTS', waiting_key(ARGV[2])) == 1 then return {'busy'} end
redis.call('SET', claim, token, 'PX', ARGV[4])
return {'ok'}
