-- prefix, key, revision it is written over, body, ttl ms -> {'ok'} | {'stale'}
local key = ARGV[2]
if int(tonumber(redis.call('HGET', key, 'rev') or 0)) ~= int(tonumber(ARGV[3])) then return {'stale'} end
redis.call('HSET', key, 'body', ARGV[4])
redis.call('HINCRBY', key, 'rev', 1)
redis.call('PEXPIRE', key, ARGV[5])
return {'ok'}
