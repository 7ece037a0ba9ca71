-- prefix, credential -> {'ok'} | {'held', when to ask again, interval us, why or ''}
local key, t = credential_key(ARGV[2]), now()
local r = redis.call('HMGET', key, 'until', 'interval', 'next', 'why')
local held, interval = tonumber(r[1] or '0'), tonumber(r[2] or '0')
if held > t then return {'held', int(held), int(interval), r[4] or ''} end
local next = tonumber(r[3] or '0')
if next > t then return {'held', int(next), int(interval), ''} end
if interval > 0 then redis.call('HSET', key, 'next', int(t + interval)) end
return {'ok'}
