-- prefix, id, delivery, fence, crashed, nonce -> {'ok', record} | {'stale'} | {'notfound'}
local id = ARGV[2]
local key = task_key(id)
local r = redis.call('HMGET', key, 'state', 'thread', 'delivery', 'fence', 'idle')
local state, thread = r[1], r[2]
if not state then return {'notfound'} end
if repeated(id, ARGV[6]) then return {'ok', redis.call('HGETALL', key)} end
if state == 'ended' or state == 'absorbed' or r[3] ~= ARGV[3] or r[4] ~= ARGV[4] then return {'stale'} end
local counts = ARGV[5] == '1' and not r[5]
if state == 'running' then
  if redis.call('EXISTS', claim_key(thread)) == 1 then return {'stale'} end
  redis.call('HSET', key, 'state', 'waiting')
  end_run(key, 'its worker died')
  redis.call('HDEL', key, 'held')
  untake(key)
  let_go(id)
  redis.call('ZADD', waiting_key(thread), born(id), id)
  local stay = kept(id)
  if counts then -- any of the absorbed tasks may have caused the crash
    for _, other in ipairs(redis.call('ZRANGE', absorbed_key(id), '0', '-1')) do
      local o = redis.pcall('HMGET', task_key(other), 'state', 'into')
      if not stay[other] and o[1] == 'absorbed' and o[2] == id then
        count_crash(other)
        redis.call('HINCRBY', task_key(other), 'delivery', '1') -- the dead worker may hold its present delivery
      end
    end
  end
  part(id, thread, stay)
end
note(id, ARGV[6])
if ARGV[5] == '1' then
  -- A run that had not started yet, and waited beside others, has not caused a crash and does not count as an attempt.
  if r[5] then
    redis.call('HINCRBY', key, 'attempt', '-1')
  else
    count_crash(id)
  end
end
redis.call('HINCRBY', key, 'delivery', '1')
redis.call('ZADD', READY, '0', id)
next_up(thread) -- an older task may have come meanwhile
return {'ok', redis.call('HGETALL', key)}
