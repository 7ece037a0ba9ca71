-- prefix, id, delivery, attempt, wait us -> {'ok'} | {'stale'}
local id = ARGV[2]
local r = redis.call('HMGET', task_key(id), 'state', 'delivery', 'outbox')
if r[1] ~= 'ended' or r[2] ~= ARGV[3] or r[3] ~= ARGV[4] then return {'stale'} end
redis.call('ZADD', OUTBOX, int(now() + tonumber(ARGV[5])), id)
return {'ok'}
