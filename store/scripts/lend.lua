-- prefix, id, fence -> {'ok'} | {'stale'}
local id, key = ARGV[2], task_key(ARGV[2])
if not runs(id, ARGV[3]) then return {'stale'} end
local caps = redis.call('HGET', key, 'caps')
if caps then
  redis.call('HSET', key, 'lent', caps)
  redis.call('HDEL', key, 'caps') -- so that no refresh takes the places again
  for scope in each(caps) do
    redis.call('ZREM', cap_key(scope), id)
    call_up(scope)
  end
end
return {'ok'}
