-- prefix, id, delivery, pool, asynq's IDs of this delivery and of the next, its message, when it is due, nonce
--   -> {'ok'} | {'stale'} | {'notfound'}
local id = ARGV[2]
local key = task_key(id)
local r = redis.call('HMGET', key, 'state', 'delivery', 'class', 'pool')
if not r[1] then return {'notfound'} end
if repeated(id, ARGV[9]) then return {'ok'} end
if r[1] ~= 'waiting' or r[2] ~= ARGV[3] then return {'stale'} end
-- Remove the delivery from the queue that it leaves, which may have no workers. A worker that has it finds it stale.
local queue = queue_keys(queue_of(r[4], r[3]))
local state = redis.call('HGET', delivery_key(queue, ARGV[5]), 'state')
local left = 0
if state == 'pending' then
  left = redis.call('LREM', queue .. 'pending', '-1', ARGV[5]) -- the end where the oldest is
elseif state == 'scheduled' or state == 'retry' then
  left = redis.call('ZREM', queue .. state, ARGV[5])
end
if left > 0 then redis.call('DEL', delivery_key(queue, ARGV[5])) end
note(id, ARGV[9])
redis.call('HSET', key, 'pool', ARGV[4])
redis.call('HINCRBY', key, 'delivery', '1')
local name = queue_of(ARGV[4], r[3])
push(queue_keys(name), name, ARGV[6], ARGV[7], tonumber(ARGV[8]), now())
return {'ok'}
