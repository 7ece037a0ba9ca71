-- prefix, worker, state, ttl ms, host, pool -> {'ok', live workers of the pool, '1' if the worker or its host is cordoned}
local t = now()
redis.call('SET', P .. 'worker:' .. ARGV[2], ARGV[3], 'PX', ARGV[4])
-- A worker that was seen in the future was seen before Redis' clock went back. It has its whole time from now on.
local pool = P .. 'pool:' .. ARGV[6]
for _, key in ipairs({P .. 'workers', pool}) do
  for _, worker in ipairs(redis.call('ZRANGEBYSCORE', key, '(' .. int(t), '+inf')) do redis.call('ZADD', key, int(t), worker) end
  redis.call('ZADD', key, int(t), ARGV[2])
  redis.call('ZREMRANGEBYSCORE', key, '-inf', int(t - tonumber(ARGV[4]) * 1000))
end
redis.call('PEXPIRE', pool, ARGV[4])
local cordoned = redis.call('HMGET', P .. 'cordoned', ARGV[2], ARGV[5])
return {'ok', int(redis.call('ZCARD', pool)), (cordoned[1] or cordoned[2]) and '1' or '0'}
