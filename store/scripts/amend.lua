-- prefix, id, task, merge_key, scopes, topic, its lifetime ms, edit -> {'ok'} | {'begun'} | {'ended'} | {'stale'} | {'notfound'}
local id, key = ARGV[2], task_key(ARGV[2])
local r = redis.call('HMGET', key, 'state', 'thread', 'fence', 'cancel_cause', 'edit', 'scopes', 'line')
if not r[1] then return {'notfound'} end
if r[1] == 'ended' or r[4] then return {'ended'} end
if r[5] and r[5] > ARGV[8] then return {'stale'} end
redis.call('HSET', key, 'edit', ARGV[8])
if r[1] ~= 'waiting' or r[3] ~= '0' then return {'begun'} end
redis.call('HSET', key, 'task', ARGV[3], 'merge_key', ARGV[4], 'scopes', ARGV[5])
if r[7] and r[6] ~= ARGV[5] then -- it may not have to wait in that line
  leave(id)
  make_ready(id)
end
redis.call('HDEL', key, 'retried_by') -- the new text is its author's, not that of a person who retried the old one
-- Replace the thread's topic only if it is from this task: a later task has a newer one.
local topic = redis.call('GET', topic_key(r[2]))
if ARGV[6] ~= '' and topic and string.find(topic, '"' .. id .. '"', 1, true) then redis.call('SET', topic_key(r[2]), ARGV[6], 'PX', ARGV[7]) end
redis.call('PUBLISH', P .. 'mail', r[2])
return {'ok'}
