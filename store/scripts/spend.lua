-- prefix, id, fence, cost cap, model, cost, size, parts, (scope or kind, budget)...
--   -> {'ok', 'spent budget scope' for each budget that this cost takes beyond 80 %...} | {'stale'}
-- Amounts are micro-dollars. The parts are lines "credential:<name or empty> <cost> <runs> <tokens: input, output, cache read, cache
-- creation>", one of them with the run. The second time, with the same fence, changes nothing.
local id, fence, cost = ARGV[2], ARGV[3], tonumber(ARGV[6])
if not runs(id, fence) then return {'stale'} end
local key = task_key(id)
local r = redis.call('HMGET', key, 'settled', 'scopes', 'near')
local scopes, near = r[2] or '', r[3] or ''
if r[1] ~= fence then
  free_reservation(id)
  local today = day(now())
  for scope in each('fleet\n' .. scopes) do
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
  for part in each(ARGV[8]) do
    local credential, amounts = string.match(part, '^(%S+) (.*)$')
    local more, total, size, cell = {}, {}, ARGV[7], scopes
    for n in string.gmatch(amounts, '%S+') do table.insert(more, tonumber(n)) end
    if credential ~= 'credential:' then
      cell = cell .. '\n' .. credential
      local spend = spend_key(today, credential)
      redis.call('HINCRBY', spend, 'spent', int(more[1]))
      redis.call('EXPIRE', spend, '691200')
    end
    if more[2] == 0 then size = '' end
    if size ~= '' then cell = cell .. '\nsize:' .. size end
    cell = cell .. '\n' .. ARGV[5]
    local sums = redis.call('HGET', costs, cell)
    if not sums and (#cell > 1000 or redis.call('HLEN', costs) >= tonumber(ARGV[4])) then
      cell, size = 'other', ''
      sums = redis.call('HGET', costs, cell)
    end
    for n in string.gmatch(sums or '0 0 0 0 0 0', '%S+') do
      if #total < #more then table.insert(total, int(tonumber(n) + more[#total + 1])) end
    end
    if size ~= '' then table.insert(total, int(math.max(cost, tonumber(string.match(sums or '', '^%S+ %S+ %S+ %S+ %S+ %S+ (%S+)') or '0')))) end
    redis.call('HSET', costs, cell, table.concat(total, ' '))
  end
  redis.call('EXPIRE', costs, '7776000')
end
local reply = {'ok'}
for line in each(near) do table.insert(reply, line) end
return reply
