-- prefix, id -> {'ok'} | {'stale'}
local r = redis.pcall('HMGET', task_key(ARGV[2]), 'state', 'thread')
if r[1] and r[2] then return {'stale'} end
redis.call('ZREM', LIVE, ARGV[2])
redis.call('ZREM', RUNNING, ARGV[2])
redis.call('SREM', JOINED, ARGV[2])
return {'ok'}
