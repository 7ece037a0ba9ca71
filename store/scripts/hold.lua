-- prefix, credential, until, interval us, why -> {'ok'}
local name = ARGV[2]
local key = credential_key(name)
local r = redis.call('HMGET', key, 'until', 'interval')
redis.call('HDEL', key, 'started')
local held = tonumber(r[1] or '0')
if tonumber(ARGV[3]) > held then
  held = tonumber(ARGV[3])
  redis.call('HSET', key, 'until', ARGV[3], 'why', ARGV[5])
end
redis.call('HSET', key, 'interval', int(math.max(tonumber(r[2] or '0'), tonumber(ARGV[4]))))
remember(name, held)
return {'ok'}
