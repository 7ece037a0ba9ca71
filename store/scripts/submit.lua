-- prefix, id, thread, class, task, at, reply mode, merge_key, scopes, topic, lifetime ms of it and of the alias, pool,
-- when to look for its delivery if it is not blocked, (scope or kind, budget)...
-- -> {'created', now, its thread, tasks before it, '1' if it will be absorbed, why it is blocked or ''} | {'exists', record} | {'spent'} |
-- with a reply mode {'openquestion', id} | with 'only' {'noquestion'} | {'overbudget', scope, spent, reserved, budget}
-- It runs once for every incoming event, so it makes as few Redis calls as possible. Nearly every event is the first of
-- its thread: none of these keys exists.
local id, thread, merge_key = ARGV[2], ARGV[3], ARGV[8]
local key = task_key(id)
local known = redis.call('EXISTS', key, spent_key(id), alias_key(thread), waiting_key(thread)) > 0
local head
if known then
  if redis.call('EXISTS', spent_key(id)) == 1 then return {'spent'} end
  if redis.call('EXISTS', key) == 1 then return {'exists', redis.call('HGETALL', key)} end
  local target = redis.call('GET', alias_key(thread))
  if target then
    redis.call('PEXPIRE', alias_key(thread), ARGV[11])
    thread = target
  end
  head = redis.call('ZRANGE', waiting_key(thread), '0', '0')[1]
  if head and ARGV[7] ~= '' and redis.call('EXISTS', questions_key(head)) == 1 and redis.call('HGET', task_key(head), 'state') == 'running' then
    return {'openquestion', head}
  end
end
if ARGV[7] == 'only' then return {'noquestion'} end
local waiting, t = waiting_key(thread), now()
local refused = overbudget(ARGV[9], 14, t)
if refused then return refused end
if redis.call('EXISTS', P .. 'epoch') == 0 then taken_over() end -- note now that all before is unknown
-- Fields that are missing count as 0; claim.lua and others need the rest.
redis.call('HSET', key, 'thread', thread, 'class', ARGV[4], 'task', ARGV[5], 'at', ARGV[6], 'state', 'waiting', 'delivery', '0',
  'fence', '0', 'created', int(t), 'merge_key', merge_key, 'scopes', ARGV[9])
if ARGV[12] ~= '' then redis.call('HSET', key, 'pool', ARGV[12]) end
redis.call('ZADD', waiting, born(id), id)
redis.call('ZADD', LIVE, '0', id)
redis.call('ZADD', TASKS, '0', id)
redis.call('PERSIST', pictures_key(id))
if ARGV[10] ~= '' then
  redis.call('SET', topic_key(thread), ARGV[10], 'PX', ARGV[11])
  redis.call('ZADD', thread_key(thread), '0', id)
  redis.call('PEXPIRE', thread_key(thread), ARGV[11])
end
local before = head and redis.call('ZRANK', waiting, id) or 0
local blocked = before > 0 and '0 0 ' .. int(before) .. ' ' 
  or tonumber(ARGV[6]) <= t and join_line(id, ARGV[9]) or ''
if blocked == '' then redis.call('ZADD', READY, ARGV[13], id) else block(id, blocked) end
if not head then return {'created', int(t), thread, '0', '0', blocked} end

-- The task will be absorbed if all tasks before it have its merge key, because the first of them then absorbs the
-- others. The exception is a running task that absorbs nothing more, or a blocked one: that may take hours, and the
-- user should hear that they wait.
local absorbed = before > 0 and merge_key ~= ''
for i, other in ipairs(before > 0 and redis.call('ZRANGE', waiting, '0', int(before - 1)) or {}) do
  local r = redis.pcall('HMGET', task_key(other), 'merge_key', 'state', 'closed', 'held', 'fence', 'at')
  local busy = r[2] == 'running' and r[3] == r[4] or r[2] == 'waiting' and tonumber(r[6]) > t
  if r[1] ~= merge_key or i > 1 and r[5] ~= '0' or i == 1 and busy then absorbed = false end
end
redis.call('PUBLISH', P .. 'mail', thread) -- for the running task
return {'created', int(t), thread, int(before), absorbed and '1' or '0', blocked}
