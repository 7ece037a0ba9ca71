-- prefix, id, fence, wanted, (scope or kind, budget)...
--   -> {'ok', left under the tightest budget or ''} | {'overbudget', scope, spent, reserved by others, budget} | {'stale'}
-- Amounts are micro-dollars.
local id, wanted = ARGV[2], tonumber(ARGV[4])
if not runs(id, ARGV[3]) then return {'stale'} end
local key, today = task_key(id), day(now())
local scopes = 'fleet\n' .. (redis.call('HGET', key, 'scopes') or '')
local left
for scope in each(scopes) do
  local budget = bound(scope, 5)
  if budget then
    local spent, reserved = 0, 0
    local all = redis.call('HGETALL', spend_key(today, scope))
    for i = 1, #all, 2 do
      if all[i] == 'spent' then
        spent = tonumber(all[i + 1])
      elseif all[i] ~= 'r:' .. id then
        reserved = reserved + tonumber(all[i + 1])
      end
    end
    local free = budget - spent - reserved
    -- Give the rest of a budget to a run that wants more than that, but not while other runs may return part of
    -- theirs.
    if spent >= budget or free < wanted and reserved > 0 then
      return {'overbudget', scope, int(spent), int(reserved), int(budget)}
    end
    left = math.min(left or free, free)
  end
end
if not left then return {'ok', ''} end
free_reservation(id)
for scope in each(scopes) do
  if bound(scope, 5) then
    local spend = spend_key(today, scope)
    redis.call('HSET', spend, 'r:' .. id, int(math.min(wanted, left)))
    redis.call('EXPIRE', spend, '691200')
  end
end
redis.call('HSET', key, 'reserved', today)
return {'ok', int(left)}
