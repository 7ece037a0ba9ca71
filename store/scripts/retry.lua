-- prefix, id, nonce, by -> {'ok', record} | {'notended'} | {'unposted'} | {'notfound'}
local id = ARGV[2]
local key, events = task_key(id), events_key(id)
local r = redis.call('HMGET', key, 'state', 'thread', 'covers', 'outbox')
if not r[1] then return {'notfound'} end
if repeated(id, ARGV[3]) then return {'ok', redis.call('HGETALL', key)} end
if r[1] ~= 'ended' then return {'notended'} end
if r[3] and r[4] ~= '-1' then return {'unposted'} end -- others have no other answer
note(id, ARGV[3])
redis.call('HSET', key, 'state', 'waiting', 'at', '0', 'attempt', '0', 'crashes', '0', 'outbox', '0', 'retried', int(now()), 'retried_by', ARGV[4])
redis.call('HDEL', key, 'ending', 'started', 'ended', 'cancel_by', 'cancel_cause', 'held', 'into', 'why', 'parked',
  'settled', 'near', 'crashed', 'first', 'explained', 'explained_at', 'runs', 'covers',
  'shown', 'unposted', 'undelivered')
redis.call('HINCRBY', key, 'delivery', '1')
redis.call('ZADD', waiting_key(r[2]), born(id), id)
redis.call('ZADD', LIVE, '0', id)
redis.call('ZADD', READY, '0', id)
redis.call('PUBLISH', P .. 'mail', r[2])
undue(id)
redis.call('ZREM', UNDELIVERED, id)
redis.call('ZREM', EXPIRING, id)
redis.call('PERSIST', key)
redis.call('PERSIST', events)
redis.call('PERSIST', pictures_key(id))
redis.call('PERSIST', log_key(id))
redis.call('DEL', questions_key(id)) -- the new run asks again
-- Keep the history but remove its end mark, which is the last entry: an ended task gets no further events.
local last = redis.call('XREVRANGE', events, '+', '-', 'COUNT', '1')[1]
if last and last[2][1] == 'end' then redis.call('XDEL', events, last[1]) end
return {'ok', redis.call('HGETALL', key)}
