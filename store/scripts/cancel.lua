-- prefix, id, by, cause -> {'ok', record} | {'notfound'}
local id = ARGV[2]
local key = task_key(id)
local state = redis.call('HGET', key, 'state')
if not state then return {'notfound'} end
if state ~= 'ended' then
  if redis.call('HSETNX', key, 'cancel_cause', ARGV[4]) == 1 then
    redis.call('HSET', key, 'cancel_by', ARGV[3])
  end
  redis.call('PUBLISH', P .. 'cancel', id)
end
return {'ok', redis.call('HGETALL', key)}
