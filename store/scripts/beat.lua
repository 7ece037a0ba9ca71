-- prefix, worker, state, ttl ms, host -> {'ok', live workers, '1' if the worker or its host is cordoned}
local t = now()
redis.call('SET', P .. 'worker:' .. ARGV[2], ARGV[3], 'PX', ARGV[4])
-- A worker that was seen in the future was seen before Redis' clock went back. It has its whole time from now on.
for _, worker in ipairs(redis.call('ZRANGEBYSCORE', P .. 'workers', '(' .. int(t), '+inf')) do redis.call('ZADD', P .. 'workers', int(t), worker) end
redis.call('ZADD', P .. 'workers', int(t), ARGV[2])
redis.call('ZREMRANGEBYSCORE', P .. 'workers', '-inf', int(t - tonumber(ARGV[4]) * 1000))
local cordoned = redis.call('HMGET', P .. 'cordoned', ARGV[2], ARGV[5])
return {'ok', int(redis.call('ZCARD', P .. 'workers')), (cordoned[1] or cordoned[2]) and '1' or '0'}
