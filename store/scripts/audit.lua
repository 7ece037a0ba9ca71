-- prefix, hash of the last entry, hash of the new one, new entry, most entries -> {'ok'} | {'stale'}
-- The caller has hashed the new entry with the hash of the last one. The hash of the last removed entry is kept, so
-- that the rest can still be verified.
local chain, list = P .. 'auditchain', P .. 'audit'
if (redis.call('HGET', chain, 'head') or '') ~= ARGV[2] then return {'stale'} end
redis.call('RPUSH', list, ARGV[3] .. ' ' .. ARGV[4])
redis.call('HSET', chain, 'head', ARGV[3])
redis.call('HINCRBY', chain, 'seq', 1)
while redis.call('LLEN', list) > tonumber(ARGV[5]) do
  local gone = redis.call('LPOP', list)
  redis.call('HSET', chain, 'base', string.sub(gone, 1, 64))
  redis.call('HINCRBY', chain, 'removed', 1)
end
return {'ok'}
