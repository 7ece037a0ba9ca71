-- prefix, alias, thread, ttl ms -> {'ok'} | {'no'}
-- The stored name is never an alias itself at that time, so one hop resolves it.
local thread = redis.call('GET', alias_key(ARGV[3])) or ARGV[3]
if thread == ARGV[2] then return {'no'} end
redis.call('SET', alias_key(ARGV[2]), thread, 'PX', ARGV[4])
return {'ok'}
