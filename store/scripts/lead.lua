-- prefix, name, who, ttl ms -> {'ok', term} | {'no'}
local key, who = P .. 'leader:' .. ARGV[2], ARGV[3]
local holder = redis.call('GET', key)
local term = holder and string.match(holder, '^' .. who .. ' (%d+)$')
if holder and not term then
  shorten(key, ARGV[4])
  return {'no'}
end
term = term or int(now())
-- The listing index outlives its records. The leader removes the IDs of expired ones.
for _, id in ipairs(redis.call('ZRANGEBYSCORE', EXPIRING, '-inf', int(now()), 'LIMIT', '0', '500')) do
  redis.call('ZREM', EXPIRING, id)
  if redis.call('EXISTS', task_key(id)) == 0 then redis.call('ZREM', TASKS, id) end
end
redis.call('SET', key, who .. ' ' .. term, 'PX', ARGV[4])
return {'ok', term}
