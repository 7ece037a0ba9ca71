-- prefix, id, thread, fence, token, ttl ms, session id, meta, data -> {'ok', the data that it replaces, if that is an object} | {'stale'}
-- After its task has ended, only the claim proves that the holder still has the thread. Since a lost claim is
-- restored, only the fence proves that no later task of the thread has saved a newer session.
local thread, fence = ARGV[3], ARGV[4]
if redis.call('GET', claim_key(thread)) ~= ARGV[5] and not runs(ARGV[2], fence) then return {'stale'} end
local key = session_key(thread)
local saved = redis.pcall('HGET', key, 'fence')
if type(saved) == 'table' then redis.call('DEL', key) end -- the key has another type
if (tonumber(saved) or 0) > tonumber(fence) then return {'stale'} end
local old = replaced(key, 'data', ARGV[9])
redis.call('HSET', key, 'id', ARGV[7], 'meta', ARGV[8], 'data', ARGV[9], 'fence', fence)
redis.call('PEXPIRE', key, ARGV[6])
return {'ok', old}
