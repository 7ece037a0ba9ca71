-- prefix, id, thread, fence, token, at, why, counts, cause of a park or empty, key of the reason -> {'ok'} | {'stale'}

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

local id, thread, fence, token = ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local key = task_key(id)
if not runs(id, fence) then
  -- It is done already and the reply was lost, if the task was not claimed or requeued since.
  local r = redis.call('HMGET', key, 'state', 'fence')
  if r[1] == 'waiting' and r[2] == fence and repeated(id, token) then return {'ok'} end
  return {'stale'}
end
redis.call('HSET', key, 'state', 'waiting', 'at', ARGV[6], 'why', ARGV[7], 'tell', ARGV[10])
note(id, token)
end_run(key, ARGV[7])
redis.call('HDEL', key, 'held')
untake(key)
let_go(id)
if ARGV[8] == '0' then redis.call('HINCRBY', key, 'attempt', '-1') end
if ARGV[9] ~= '' then parked(key, ARGV[9]) end
redis.call('HINCRBY', key, 'delivery', '1')
redis.call('ZADD', waiting_key(thread), born(id), id)
redis.call('ZADD', READY, ARGV[6], id)
part(id, thread, kept(id))
if redis.call('GET', claim_key(thread)) == token then redis.call('DEL', claim_key(thread)) end
next_up(thread)
return {'ok'}
