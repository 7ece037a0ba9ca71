-- prefix, credential, least us, most us, apart us -> {'ok'}
local name, t = ARGV[2], now()
local key = credential_key(name)
local r = redis.call('HMGET', key, 'until', 'interval', 'slowed')
redis.call('HDEL', key, 'started')
-- All live runs meet the same overload at once. Slow down once for all of them.
local since = t - tonumber(r[3] or '0')
if since < 0 or since >= tonumber(ARGV[5]) then
  local interval = math.min(math.max(tonumber(r[2] or '0') * 2, tonumber(ARGV[3])), tonumber(ARGV[4]))
  redis.call('HSET', key, 'interval', int(interval), 'slowed', int(t))
end
remember(name, tonumber(r[1] or '0'))
return {'ok'}
