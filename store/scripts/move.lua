-- prefix, id, delivery, pool, nonce -> {'ok'} | {'stale'} | {'notfound'}
local id = ARGV[2]
local key = task_key(id)
local r = redis.call('HMGET', key, 'state', 'delivery', 'at')
if not r[1] then return {'notfound'} end
if repeated(id, ARGV[5]) then return {'ok'} end
if r[1] ~= 'waiting' or r[2] ~= ARGV[3] then return {'stale'} end
note(id, ARGV[5])
redis.call('HSET', key, 'pool', ARGV[4])
redis.call('HINCRBY', key, 'delivery', '1')
redis.call('ZADD', READY, 'XX', r[3] or '0', id) -- a blocked one stays blocked
return {'ok'}
