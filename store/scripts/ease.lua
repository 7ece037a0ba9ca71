-- prefix, credential, least us -> {'ok'}
local name = ARGV[2]
local key = credential_key(name)
local r = redis.call('HMGET', key, 'until', 'interval')
local held, interval = tonumber(r[1] or '0'), tonumber(r[2] or '0') / 2
redis.call('HDEL', key, 'refused', 'lapse')
if interval >= tonumber(ARGV[3]) then
  redis.call('HSET', key, 'interval', int(interval))
elseif held > now() then
  redis.call('HDEL', key, 'interval', 'next', 'slowed')
else
  redis.call('DEL', key)
  redis.call('ZREM', CREDENTIALS, name)
end
return {'ok'}
