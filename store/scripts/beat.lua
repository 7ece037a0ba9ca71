-- prefix, worker, state, ttl ms -> {'ok', live workers}
local t = now()
redis.call('SET', P .. 'worker:' .. ARGV[2], ARGV[3], 'PX', ARGV[4])
-- A worker that was seen in the future was seen before Redis' clock went back. It has its whole time from now on.
for _, worker in ipairs(redis.call('ZRANGEBYSCORE', P .. 'workers', '(' .. int(t), '+inf')) do redis.call('ZADD', P .. 'workers', int(t), worker) end
redis.call('ZADD', P .. 'workers', int(t), ARGV[2])
redis.call('ZREMRANGEBYSCORE', P .. 'workers', '-inf', int(t - tonumber(ARGV[4]) * 1000))
return {'ok', int(redis.call('ZCARD', P .. 'workers'))}
