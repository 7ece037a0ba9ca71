-- prefix, id, thread, class, task, at, reply mode, merge_key, scopes, topic, lifetime ms of it and of the alias, (scope or kind, budget)...
-- -> {'created', now, its thread, tasks before it, '1' if it will be absorbed} | {'exists', record} | {'spent'} |
-- with a reply mode {'openquestion', id} | with 'only' {'noquestion'} | {'overbudget', scope, spent, reserved, budget}
-- It runs once for every incoming event, so it makes as few Redis calls as possible.
local id, thread, merge_key = ARGV[2], ARGV[3], ARGV[8]
local key = task_key(id)
if redis.call('EXISTS', key, spent_key(id)) > 0 then
  if redis.call('EXISTS', spent_key(id)) == 1 then return {'spent'} end
  return {'exists', redis.call('HGETALL', key)}
end
local target = redis.call('GET', alias_key(thread))
if target then
  redis.call('PEXPIRE', alias_key(thread), ARGV[11])
  thread = target
end
local waiting = waiting_key(thread)
local head = redis.call('ZRANGE', waiting, '0', '0')[1]
if head and ARGV[7] ~= '' and redis.call('EXISTS', questions_key(head)) == 1 and redis.call('HGET', task_key(head), 'state') == 'running' then
  return {'openquestion', head}
end
if ARGV[7] == 'only' then return {'noquestion'} end
local t = now()
if ARGV[12] then
  for scope in each('fleet\n' .. ARGV[9]) do
    local budget = bound(scope, 12)
    local spent = budget and tonumber(redis.call('HGET', spend_key(day(t), scope), 'spent') or '0')
    if budget and spent >= budget then return {'overbudget', scope, int(spent), '0', int(budget)} end
  end
end
redis.call('HSET', key, 'thread', thread, 'class', ARGV[4], 'task', ARGV[5], 'at', ARGV[6], 'state', 'waiting', 'delivery', '0',
  'attempt', '0', 'crashes', '0', 'fence', '0', 'outbox', '0', 'created', int(t), 'merge_key', merge_key, 'scopes', ARGV[9])
redis.call('ZADD', waiting, born(id), id)
redis.call('ZADD', LIVE, '0', id)
redis.call('ZADD', TASKS, '0', id)
if ARGV[10] ~= '' then
  redis.call('SET', topic_key(thread), ARGV[10], 'PX', ARGV[11])
  redis.call('ZADD', thread_key(thread), '0', id)
  redis.call('ZREMRANGEBYRANK', thread_key(thread), '0', '-201')
  redis.call('PEXPIRE', thread_key(thread), ARGV[11])
end

-- The listing index outlives its records. Every submit removes some expired IDs, so that the index stays bounded.
local gone = redis.call('ZRANGEBYSCORE', EXPIRING, '-inf', int(t), 'LIMIT', '0', '10')
for _, old in ipairs(gone) do
  redis.call('ZREM', EXPIRING, old)
  if redis.call('EXISTS', task_key(old)) == 0 then
    redis.call('ZREM', TASKS, old)
  end
end

if not head then return {'created', int(t), thread, '0', '0'} end

-- The task will be absorbed if all tasks before it have its merge key, because the first of them then absorbs the
-- others. The exception is a running task that absorbs nothing more, or a parked one: that may take hours, and the
-- user should hear that they wait.
local before = redis.call('ZRANK', waiting, id)
local absorbed = before > 0 and merge_key ~= ''
for i, other in ipairs(before > 0 and redis.call('ZRANGE', waiting, '0', int(before - 1)) or {}) do
  local r = redis.pcall('HMGET', task_key(other), 'merge_key', 'state', 'closed', 'held', 'fence', 'at')
  local busy = r[2] == 'running' and r[3] == r[4] or r[2] == 'waiting' and tonumber(r[6]) > t
  if r[1] ~= merge_key or i > 1 and r[5] ~= '0' or i == 1 and busy then absorbed = false end
end
redis.call('PUBLISH', P .. 'mail', thread) -- for the running task
return {'created', int(t), thread, int(before), absorbed and '1' or '0'}
