-- prefix, id, delivery, attempt, retention ms, why it was given up or '' -> {'ok'} | {'stale'}
local id = ARGV[2]
local r = redis.call('HMGET', task_key(id), 'state', 'delivery', 'outbox')
if r[1] ~= 'ended' or r[2] ~= ARGV[3] then return {'stale'} end
if r[3] == '-1' then return {'ok'} end
if r[3] ~= ARGV[4] then return {'stale'} end
redis.call('HDEL', task_key(id), 'unposted', 'undelivered')
expire(id, ARGV[5])
if ARGV[6] ~= '' then
  local t = now()
  redis.call('HSET', task_key(id), 'undelivered', ARGV[6])
  redis.call('ZADD', UNDELIVERED, int(t), id)
  redis.call('ZREMRANGEBYSCORE', UNDELIVERED, '-inf', int(t - tonumber(ARGV[5]) * 1000))
  redis.call('PEXPIRE', UNDELIVERED, ARGV[5])
end
return {'ok'}
