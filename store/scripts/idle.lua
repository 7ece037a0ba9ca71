-- prefix, id, fence, why or '' -> {'ok'} | {'stale'}
local id, key = ARGV[2], task_key(ARGV[2])
if not runs(id, ARGV[3]) then return {'stale'} end
if ARGV[4] == '' then
  redis.call('HDEL', key, 'idle', 'why', 'first')
else
  redis.call('HSET', key, 'idle', '1', 'why', ARGV[4])
end
return {'ok'}
