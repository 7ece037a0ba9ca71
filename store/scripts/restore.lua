-- prefix, id, thread, fence, token, ttl ms, lease ms, ending or '', event cap, field, value...
--   -> {'ok'}: it runs again | {'no'}: it has that ending | {'stale'}
-- Restores a running task that Redis has lost, as its holder knew it, if the thread still belongs to the holder.
local id, thread, fence, token = ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local key = task_key(id)
local r = redis.call('HMGET', key, 'state', 'fence', 'cancel_by', 'cancel_cause')
-- The record is there if the service has redelivered the event meanwhile, or if Redis has lost only the claim. That is
-- the same task, and it has not started again.
if r[1] and not (r[1] == 'waiting' and tonumber(r[2]) < tonumber(fence)) then return {'stale'} end
local holder = redis.call('GET', claim_key(thread))
local free = (not holder or holder == token) and (runner(thread) or id) == id
if not free and ARGV[8] == '' then return {'stale'} end
redis.call('DEL', key)
redis.call('HSET', key, unpack(ARGV, 10))
redis.call('HDEL', key, 'idle') -- it has started since the claim
if r[4] then redis.call('HSET', key, 'cancel_by', r[3], 'cancel_cause', r[4]) end
if tonumber(redis.call('GET', FENCE) or '0') < tonumber(fence) then redis.call('SET', FENCE, fence) end
redis.call('ZADD', TASKS, '0', id)
if not free then
  finish(id, thread, ARGV[8], ARGV[9], 10000000)
  return {'no'}
end
redis.call('ZADD', waiting_key(thread), '0', id)
redis.call('ZADD', LIVE, '0', id)
redis.call('ZADD', RUNNING, fence, id)
redis.call('SET', claim_key(thread), token, 'PX', ARGV[6])
hold(id, redis.call('HGET', key, 'caps'), now(), ARGV[7])
return {'ok'}
