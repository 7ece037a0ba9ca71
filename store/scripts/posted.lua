-- prefix, id, delivery, attempt, retention ms -> {'ok'} | {'stale'}
local id = ARGV[2]
local r = redis.call('HMGET', task_key(id), 'state', 'delivery', 'outbox')
if r[1] ~= 'ended' or r[2] ~= ARGV[3] then return {'stale'} end
if r[3] == '-1' then return {'ok'} end
if r[3] ~= ARGV[4] then return {'stale'} end
expire(id, ARGV[5])
return {'ok'}
