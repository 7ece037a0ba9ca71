-- prefix, id, delivery, attempt, wait us, why, '1' if people have the answer -> {'ok'} | {'stale'}
local id = ARGV[2]
local r = redis.call('HMGET', task_key(id), 'state', 'delivery', 'outbox')
if r[1] ~= 'ended' or r[2] ~= ARGV[3] or r[3] ~= ARGV[4] then return {'stale'} end
redis.call('HSET', task_key(id), 'unposted', ARGV[6])
if ARGV[7] == '1' then redis.call('HSET', task_key(id), 'shown', '1') end
due_at(id, now() + tonumber(ARGV[5]))
return {'ok'}
