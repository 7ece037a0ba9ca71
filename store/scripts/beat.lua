-- prefix, worker, state, ttl ms -> {'ok', live workers}
local t = now()
redis.call('SET', P .. 'worker:' .. ARGV[2], ARGV[3], 'PX', ARGV[4])
redis.call('ZADD', P .. 'workers', int(t), ARGV[2])
redis.call('ZREMRANGEBYSCORE', P .. 'workers', '-inf', int(t - tonumber(ARGV[4]) * 1000))
return {'ok', int(redis.call('ZCARD', P .. 'workers'))}
