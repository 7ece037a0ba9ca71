-- prefix, id, delivery, key, event, apart us, event cap -> {'ok'} | {'no'}
local id, key, t = ARGV[2], task_key(ARGV[2]), now()
local r = redis.call('HMGET', key, 'state', 'delivery', 'told', 'told_at')
if r[1] ~= 'waiting' or r[2] ~= ARGV[3] or r[3] == ARGV[4] then return {'no'} end
if r[4] and tonumber(r[4]) + tonumber(ARGV[6]) > t then return {'no'} end
redis.call('HSET', key, 'told', ARGV[4], 'told_at', int(t))
redis.call('XADD', events_key(id), 'MAXLEN', '=', ARGV[7], '*', 'data', ARGV[5])
redis.call('PUBLISH', NEWS, id)
return {'ok'}
