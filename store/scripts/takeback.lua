-- prefix, id, fence, lease ms -> {'ok'} | {'stale'}
local id, key = ARGV[2], task_key(ARGV[2])
if not runs(id, ARGV[3]) then return {'stale'} end
local caps = redis.call('HGET', key, 'lent')
if caps then
  redis.call('HSET', key, 'caps', caps)
  redis.call('HDEL', key, 'lent')
  hold(id, caps, now(), ARGV[4])
end
return {'ok'}
