-- prefix, id, the archived events, retention ms, the rest of the stream's life in ms
--   -> {'ok', the value that is gone, if an object} | {'stale'}
local id, key = ARGV[2], log_key(ARGV[2])
local r = redis.call('HMGET', task_key(id), 'state', 'outbox')
if r[1] ~= 'ended' or r[2] ~= '-1' then return {'stale'} end
local old = replaced(key, 'events', ARGV[3])
redis.call('HSET', key, 'events', ARGV[3])
redis.call('PEXPIRE', key, ARGV[4])
redis.call('PEXPIRE', events_key(id), ARGV[5])
return {'ok', old}
