-- prefix, id, fence, ttl ms, body, IDs of its absorbed tasks -> {'ok', the body that it replaces, if that is an object} | {'stale'}
local id = ARGV[2]
if not runs(id, ARGV[3]) then return {'stale'} end
local key = checkpoint_key(id)
local old = replaced(key, 'body', ARGV[5])
redis.call('HSET', key, 'body', ARGV[5], 'absorbed', ARGV[6], 'at', int(now()))
redis.call('PEXPIRE', key, ARGV[4])
return {'ok', old}
