-- prefix, worker, state, ttl ms, host, pool, '1' if it takes tasks
--   -> {'ok', workers of the pool that take tasks, with this one, '1' if the worker or its host is cordoned}
local t = now()
redis.call('SET', P .. 'worker:' .. ARGV[2], ARGV[3], 'PX', ARGV[4])
local pool, dead = P .. 'pool:' .. ARGV[6], int(t - tonumber(ARGV[4]) * 1000)
for _, worker in ipairs(redis.call('ZRANGEBYSCORE', P .. 'workers', '-inf', dead)) do
  if redis.call('HEXISTS', P .. 'cordoned', worker) == 1 then redis.call('ZADD', P .. 'departed', int(t), worker) end
end
-- A worker that was seen in the future was seen before Redis' clock went back. It has its whole time from now on.
for _, key in ipairs({P .. 'workers', pool}) do
  for _, worker in ipairs(redis.call('ZRANGEBYSCORE', key, '(' .. int(t), '+inf')) do redis.call('ZADD', key, int(t), worker) end
  redis.call('ZADD', key, int(t), ARGV[2])
  redis.call('ZREMRANGEBYSCORE', key, '-inf', dead)
end
if ARGV[7] ~= '1' then redis.call('ZREM', pool, ARGV[2]) end
redis.call('PEXPIRE', pool, ARGV[4])
-- The cordon of a worker ends an hour after its death: its ID does not come back. It may only have been cut off before.
redis.call('ZREM', P .. 'departed', ARGV[2])
for _, worker in ipairs(redis.call('ZRANGEBYSCORE', P .. 'departed', '-inf', int(t - 3600000000))) do
  redis.call('HDEL', P .. 'cordoned', worker)
  redis.call('ZREM', P .. 'departed', worker)
end
local cordoned = redis.call('HMGET', P .. 'cordoned', ARGV[2], ARGV[5])
return {'ok', int(redis.call('ZCARD', pool) + 1 - tonumber(ARGV[7])), (cordoned[1] or cordoned[2]) and '1' or '0'}
