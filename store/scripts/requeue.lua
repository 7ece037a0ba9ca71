-- prefix, id, delivery, fence, crashed, nonce -> {'ok', record} | {'stale'} | {'notfound'}
local id = ARGV[2]
local key = task_key(id)
local r = redis.call('HMGET', key, 'state', 'thread', 'delivery', 'fence', 'idle')
local state, thread = r[1], r[2]
if not state then return {'notfound'} end
if repeated(id, ARGV[6]) then return {'ok', redis.call('HGETALL', key)} end
if state == 'ended' or state == 'absorbed' or r[3] ~= ARGV[3] or r[4] ~= ARGV[4] then return {'stale'} end
if state == 'running' then
  if redis.call('EXISTS', claim_key(thread)) == 1 then return {'stale'} end
  redis.call('HSET', key, 'state', 'waiting')
  redis.call('HDEL', key, 'held')
  let_go(id)
  redis.call('ZADD', waiting_key(thread), born(id), id)
  part(id, thread, kept(id))
end
note(id, ARGV[6])
if ARGV[5] == '1' then
  -- One that had not begun yet, and waited beside the runs of others, has taken nobody down, and was not tried.
  if r[5] then
    redis.call('HINCRBY', key, 'attempt', '-1')
  else
    redis.call('HINCRBY', key, 'crashes', '1')
    redis.call('HSET', key, 'crashed', int(now()))
  end
end
redis.call('HINCRBY', key, 'delivery', '1')
return {'ok', redis.call('HGETALL', key)}
