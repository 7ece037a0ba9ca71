-- Only a run can be taken over: it has the work.
-- prefix, id, by, cause -> {'ok', id of the task that has to stop, its record} | {'notfound'}
local id = ARGV[2]
local r = redis.call('HMGET', task_key(id), 'state', 'into')
if not r[1] then return {'notfound'} end

local function tombstone(id)
  local state = redis.call('HGET', task_key(id), 'state')
  if not state or state == 'ended' or ARGV[4] == 'taken' and state ~= 'running' then return end
  if redis.call('HSETNX', task_key(id), 'cancel_cause', ARGV[4]) == 1 then
    redis.call('HSET', task_key(id), 'cancel_by', ARGV[3])
  end
  redis.call('PUBLISH', P .. 'cancel', id)
end

tombstone(id)
if r[1] == 'absorbed' then
  -- The run that absorbed it has to stop. Its own tombstone counts if that run gives it back.
  id = r[2]
  tombstone(id)
end
return {'ok', id, redis.call('HGETALL', task_key(id))}
