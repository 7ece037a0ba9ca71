-- prefix, id, fence, cost cap, model, cost, credential or '', tokens, (scope or kind, budget)...
--   -> {'ok', 'spent budget scope' for each budget that this cost takes beyond 80 %...} | {'stale'}
-- Amounts are micro-dollars. The tokens are "<input> <output> <cache read> <cache creation>". The second time, with the same fence,
-- changes nothing.
local id, fence, cost = ARGV[2], ARGV[3], tonumber(ARGV[6])
if not runs(id, fence) then return {'stale'} end
local key = task_key(id)
local r = redis.call('HMGET', key, 'settled', 'scopes', 'near')
local scopes, near = r[2] or '', r[3] or ''
if r[1] ~= fence then
  free_reservation(id)
  local today, cell = day(now()), scopes
  if ARGV[7] ~= '' then cell = cell .. '\ncredential:' .. ARGV[7] end
  for scope in each('fleet\n' .. cell) do
    local spend = spend_key(today, scope)
    local spent, budget = redis.call('HINCRBY', spend, 'spent', int(cost)), bound(scope, 9)
    redis.call('EXPIRE', spend, '691200')
    -- Report only the crossing of the line: one warning a day.
    if budget and spent >= 0.8 * budget and spent - cost < 0.8 * budget then
      near = near .. int(spent) .. ' ' .. int(budget) .. ' ' .. scope .. '\n'
    end
  end
  redis.call('HINCRBY', key, 'cost', int(cost))
  redis.call('HSET', key, 'settled', fence, 'near', near)

  -- Users choose names, so bound their number and length: the costs of a day must not grow without limit.
  local costs = costs_key(today)
  cell = cell .. '\n' .. ARGV[5]
  local sums = redis.call('HGET', costs, cell)
  if not sums and (#cell > 1000 or redis.call('HLEN', costs) >= tonumber(ARGV[4])) then
    cell = 'other'
    sums = redis.call('HGET', costs, cell)
  end
  local before, after = {}, {}
  for n in string.gmatch(sums or '', '%S+') do table.insert(before, tonumber(n)) end
  for n in string.gmatch(ARGV[6] .. ' 1 ' .. ARGV[8], '%S+') do table.insert(after, int(tonumber(n) + (before[#after + 1] or 0))) end
  redis.call('HSET', costs, cell, table.concat(after, ' '))
  redis.call('EXPIRE', costs, '7776000')
end
local reply = {'ok'}
for line in each(near) do table.insert(reply, line) end
return reply
