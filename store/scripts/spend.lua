-- prefix, id, fence, cost, (scope or kind, budget)...
--   -> {'ok', 'spent budget scope' that the task took beyond 80 %...} | {'stale'}
-- Amounts are micro-dollars. The second time, with the same fence, changes nothing.
local id, fence, cost = ARGV[2], ARGV[3], tonumber(ARGV[4])
if not runs(id, fence) then return {'stale'} end
local key = task_key(id)
local r = redis.call('HMGET', key, 'settled', 'scopes', 'near')
local near = r[3] or ''
if r[1] ~= fence then
  free_reservation(id)
  local today = day(now())
  for scope in each('fleet\n' .. (r[2] or '')) do
    local spend = spend_key(today, scope)
    local spent, budget = redis.call('HINCRBY', spend, 'spent', int(cost)), bound(scope, 5)
    redis.call('EXPIRE', spend, '691200')
    -- Only who crosses the line says so: that is one warning a day.
    if budget and spent >= 0.8 * budget and spent - cost < 0.8 * budget then
      near = near .. int(spent) .. ' ' .. int(budget) .. ' ' .. scope .. '\n'
    end
  end
  redis.call('HINCRBY', key, 'cost', int(cost))
  redis.call('HSET', key, 'settled', fence, 'near', near)
end
local reply = {'ok'}
for line in each(near) do table.insert(reply, line) end
return reply
