-- prefix, id, thread, fence, nonce, close, event, event cap -> {'ok', id, record} | {'no'} | {'stale'}
local id, thread, fence, nonce = ARGV[2], ARGV[3], ARGV[4], ARGV[5]
if not runs(id, fence) then return {'stale'} end
local host = redis.call('HMGET', task_key(id), 'merge_key', 'closed', 'took')
local merge_key = host[1] or ''

-- The client sends a command again if the reply was lost. The nonce distinguishes that from a request for one more.
local again = host[3] and string.match(host[3], '^' .. nonce .. ' (.*)$')
if again then return {'ok', again, redis.call('HGETALL', task_key(again))} end
if merge_key == '' or host[2] == fence then return {'no'} end

-- Take only the task right behind the running one, which is the head: the order of a thread never changes.
local next = redis.call('ZRANGE', waiting_key(thread), '1', '1')[1]
if next then
  local r = redis.pcall('HMGET', task_key(next), 'merge_key', 'at', 'cancel_cause', 'fence', 'crashes', 'created')
  local t = now()
  -- A task that has started before has a conversation to resume, one that has lost a worker runs separately, and one
  -- that may have been answered is looked for first.
  if r[1] == merge_key and not r[3] and r[4] == '0' and (r[5] or '0') == '0' and tonumber(r[2]) <= t and not doubtful(next, r[6]) then
    leave(next)
    redis.call('ZREM', waiting_key(thread), next)
    redis.call('HSET', task_key(next), 'state', 'absorbed', 'into', id)
    redis.call('SADD', JOINED, next)
    redis.call('ZREM', READY, next)
    local last = redis.call('ZRANGE', absorbed_key(id), '-1', '-1', 'WITHSCORES')[2]
    redis.call('ZADD', absorbed_key(id), int(math.max(t, tonumber(last or '0') + 1)), next) -- Redis' clock may go back
    redis.call('HSET', task_key(id), 'took', nonce .. ' ' .. next)
    emit(next, ARGV[8], 'data', {ARGV[7]})
    return {'ok', next, redis.call('HGETALL', task_key(next))}
  end
end
-- Close in the same step: the submitter of any later task then sees that it waits for its own turn.
if ARGV[6] == '1' then redis.call('HSET', task_key(id), 'closed', fence) end
return {'no'}
