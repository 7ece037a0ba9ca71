-- prefix, id, delivery, why -> {'ok'} | {'no'}
local id, key = ARGV[2], task_key(ARGV[2])
local r = redis.pcall('HMGET', key, 'state', 'delivery', 'thread', 'at', 'blocked', 'why')
if r[1] ~= 'waiting' or r[2] ~= ARGV[3] or not r[3] or tonumber(r[4]) > now() or r[5] then return {'no'} end
if redis.call('EXISTS', claim_key(r[3])) == 1 or head(r[3]) ~= id then return {'no'} end
if r[6] ~= ARGV[4] then redis.call('HSET', key, 'why', ARGV[4]) end
return {'ok'}
