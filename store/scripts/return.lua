-- prefix, id, thread, fence, token, delivery, at, why, counts, cause of a park or empty -> {'ok'} | {'stale'}

-- parked notes that a task is parked for a cause once more. The field parked has a line "<cause> <first time> <times>"
-- for each cause.
local function parked(key, cause)
  local lines, first, times = {}, int(now()), 0
  for line in each(redis.call('HGET', key, 'parked') or '') do
    local of, since, n = string.match(line, '^(%S+) (%d+) (%d+)$')
    if of == cause then
      first, times = since, tonumber(n)
    elseif of then
      table.insert(lines, line)
    end
  end
  table.insert(lines, cause .. ' ' .. first .. ' ' .. int(times + 1))
  redis.call('HSET', key, 'parked', table.concat(lines, '\n'))
end

local id, thread, fence, token, delivery = ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local key = task_key(id)
if not runs(id, fence) then
  -- It is done already and the reply was lost, if the task was not claimed or requeued since.
  local r = redis.call('HMGET', key, 'state', 'fence', 'delivery')
  if r[1] == 'waiting' and r[2] == fence and r[3] == delivery then return {'ok'} end
  return {'stale'}
end
redis.call('HSET', key, 'state', 'waiting', 'at', ARGV[7], 'why', ARGV[8])
end_run(key, ARGV[8])
redis.call('HDEL', key, 'held')
let_go(id)
if ARGV[9] == '0' then redis.call('HINCRBY', key, 'attempt', '-1') end
if ARGV[10] ~= '' then parked(key, ARGV[10]) end
redis.call('ZADD', waiting_key(thread), born(id), id)
part(id, thread, kept(id))
if redis.call('GET', claim_key(thread)) == token then redis.call('DEL', claim_key(thread)) end
return {'ok'}
