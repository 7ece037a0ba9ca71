-- prefix, id, delivery, why -> {'ok'} | {'no'}
local id, key, t = ARGV[2], task_key(ARGV[2]), now()
local r = redis.pcall('HMGET', key, 'state', 'delivery', 'thread', 'at', 'blocked', 'why')
if r[1] ~= 'waiting' or r[2] ~= ARGV[3] or not r[3] or tonumber(r[4]) > t then return {'no'} end
if redis.call('EXISTS', claim_key(r[3])) == 1 or head(r[3]) ~= id then return {'no'} end
local most, scope = string.match(r[5] or '', '^%d+ (%d+) %d+ (.+)$')
if scope and redis.call('ZCOUNT', cap_key(scope), int(t), '+inf') >= tonumber(most) then return {'no'} end
redis.call('HDEL', key, 'blocked')
if r[6] ~= ARGV[4] then redis.call('HSET', key, 'why', ARGV[4]) end
return {'ok'}
