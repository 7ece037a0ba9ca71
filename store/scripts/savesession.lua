-- prefix, id, thread, fence, token, ttl ms, session id, meta, data -> {'ok'} | {'stale'}
-- Once its task has ended only the claim itself proves that the thread is still the holder's; and as a claim that vanished is put back,
-- only the fence proves that no later task of the thread has saved a newer session meanwhile.
local thread, fence = ARGV[3], ARGV[4]
if redis.call('GET', claim_key(thread)) ~= ARGV[5] and not runs(ARGV[2], fence) then return {'stale'} end
local key = session_key(thread)
local saved = redis.pcall('HGET', key, 'fence')
if type(saved) == 'table' then redis.call('DEL', key) end -- no session
if (tonumber(saved) or 0) > tonumber(fence) then return {'stale'} end
redis.call('HSET', key, 'id', ARGV[7], 'meta', ARGV[8], 'data', ARGV[9], 'fence', fence)
redis.call('PEXPIRE', key, ARGV[6])
return {'ok'}
