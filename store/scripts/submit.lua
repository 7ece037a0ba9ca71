-- prefix, id, thread, class, task, at -> {'created', now} | {'exists', record}
local id, thread = ARGV[2], ARGV[3]
local key = task_key(id)
if redis.call('EXISTS', key) == 1 then
  return {'exists', redis.call('HGETALL', key)}
end
local t = now()
redis.call('HSET', key, 'thread', thread, 'class', ARGV[4], 'task', ARGV[5], 'at', ARGV[6], 'state', 'waiting', 'delivery', '0',
  'attempt', '0', 'crashes', '0', 'fence', '0', 'outbox', '0', 'created', int(t))
redis.call('ZADD', waiting_key(thread), born(id), id)
redis.call('ZADD', LIVE, '0', id)
redis.call('ZADD', TASKS, '0', id)

-- The listing index outlives the records it names; every submit takes some of the expired out, so that it never grows for ever.
local gone = redis.call('ZRANGEBYSCORE', EXPIRING, '-inf', int(t), 'LIMIT', '0', '10')
for _, old in ipairs(gone) do
  redis.call('ZREM', EXPIRING, old)
  if redis.call('EXISTS', task_key(old)) == 0 then
    redis.call('ZREM', TASKS, old)
  end
end
return {'created', int(t)}
