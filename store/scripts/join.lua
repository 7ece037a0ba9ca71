-- prefix, (part, value)... -> {'ok' or 'no', part, value, ...}: the identity of the fleet that the data belongs to
local key = P .. 'fleet'
for i = 2, #ARGV, 2 do
  local known = redis.call('HGET', key, ARGV[i])
  if known and known ~= ARGV[i + 1] then return {'no', unpack(redis.call('HGETALL', key))} end
end
for i = 2, #ARGV, 2 do redis.call('HSET', key, ARGV[i], ARGV[i + 1]) end
return {'ok', unpack(redis.call('HGETALL', key))}
