-- prefix, id, delivery, key, interval us -> {'ok', record} | {'no'} | {'no', us until the interval is over}
local key, t = task_key(ARGV[2]), now()
local r = redis.call('HMGET', key, 'state', 'delivery', 'explained', 'explained_at')
if r[1] ~= 'waiting' or r[2] ~= ARGV[3] or r[3] == ARGV[4] then return {'no'} end
local early = r[4] and tonumber(r[4]) + tonumber(ARGV[5]) - t or 0
if early > 0 and early <= tonumber(ARGV[5]) then return {'no', int(early)} end
redis.call('HSET', key, 'explained', ARGV[4], 'explained_at', int(t))
return {'ok', redis.call('HGETALL', key)}
