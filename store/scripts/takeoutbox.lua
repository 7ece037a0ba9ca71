-- prefix, id or '', lease us -> {'ok', id, attempt, delivery} | {'no'}
local t, id = now(), ARGV[2]
local delivery
repeat
  if ARGV[2] == '' then
    id = redis.call('ZRANGEBYSCORE', OUTBOX, '-inf', int(t), 'LIMIT', '0', '1')[1]
    if not id then return {'no'} end
  else
    local due = redis.call('ZSCORE', OUTBOX, id)
    if not due or tonumber(due) > t and redis.call('HGET', task_key(id), 'outbox') ~= '0' then return {'no'} end
  end
  delivery = redis.call('HGET', task_key(id), 'delivery')
  -- A record removed by hand: incrementing its attempts would bring back a stump of it.
  if not delivery then redis.call('ZREM', OUTBOX, id) end
until delivery
redis.call('ZADD', OUTBOX, int(t + tonumber(ARGV[3])), id)
-- The attempt is the lease's token: whoever takes the item after the lease makes the earlier holder a stranger.
local attempt = redis.call('HINCRBY', task_key(id), 'outbox', '1')
return {'ok', id, int(attempt), delivery}
