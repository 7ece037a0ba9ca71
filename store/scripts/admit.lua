-- prefix, credential, least us, starts -> {'ok'} | {'held', when to ask again, interval us, why or ''}
local name, t = ARGV[2], now()
local key = credential_key(name)
local r = redis.call('HMGET', key, 'until', 'interval', 'next', 'why')
local held, interval = tonumber(r[1] or '0'), tonumber(r[2] or '0')
if held > t then return {'held', int(held), int(interval), r[4] or ''} end
local next = tonumber(r[3] or '0')
if next > t then return {'held', int(next), int(interval), ''} end
if interval > 0 then
  redis.call('HSET', key, 'next', int(t + interval))
  -- Runs last for hours, so their ends come too late as the only sign that the model copes.
  if redis.call('HINCRBY', key, 'started', 1) >= tonumber(ARGV[4]) then hasten(name, ARGV[3]) end
end
return {'ok'}
