-- prefix, id, thread, fence, token, ttl ms, session id, meta, data -> {'ok'} | {'stale'}
-- Once its task has ended only the claim itself proves that no later task of the thread has saved a newer session.
local thread = ARGV[3]
if redis.call('GET', claim_key(thread)) ~= ARGV[5] and not runs(ARGV[2], ARGV[4]) then return {'stale'} end
local key = session_key(thread)
redis.call('DEL', key) -- an older version's fields
redis.call('HSET', key, 'id', ARGV[7], 'meta', ARGV[8], 'data', ARGV[9])
redis.call('PEXPIRE', key, ARGV[6])
return {'ok'}
