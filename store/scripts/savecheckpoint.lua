-- prefix, id, fence, ttl ms, session id, meta, data, work, sum, IDs of its absorbed tasks -> {'ok'} | {'stale'}
local id = ARGV[2]
if not runs(id, ARGV[3]) then return {'stale'} end
local key = checkpoint_key(id)
redis.call('HSET', key, 'id', ARGV[5], 'meta', ARGV[6], 'data', ARGV[7], 'work', ARGV[8], 'sum', ARGV[9], 'absorbed', ARGV[10],
  'at', int(now()))
redis.call('PEXPIRE', key, ARGV[4])
return {'ok'}
