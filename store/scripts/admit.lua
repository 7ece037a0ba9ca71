-- prefix, credential, least us, starts, the worker's clock -> {'ok'} | {'held', when to ask again by that clock, interval us, why or ''}
local name, t, clock = ARGV[2], now(), tonumber(ARGV[5])
local key = credential_key(name)
local r = redis.call('HMGET', key, 'until', 'interval', 'next', 'why')
local held, interval = tonumber(r[1] or '0'), tonumber(r[2] or '0')
if held > clock then return {'held', int(held), int(interval), r[4] or ''} end
local wait = tonumber(r[3] or '0') - t
-- A longer wait is from before Redis' clock went back.
if wait > 0 and wait <= math.max(interval, 60000000) then return {'held', int(clock + wait), int(interval), ''} end
if interval > 0 then
  redis.call('HSET', key, 'next', int(t + interval))
  -- Runs last for hours, so their ends come too late as the only sign that the model copes.
  if redis.call('HINCRBY', key, 'started', 1) >= tonumber(ARGV[4]) then hasten(name, ARGV[3]) end
end
return {'ok'}
