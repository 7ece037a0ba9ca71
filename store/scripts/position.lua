-- prefix, id -> {'ok', tasks of its thread that start before it}
local id = ARGV[2]
local r = redis.call('HMGET', task_key(id), 'state', 'thread')
if not r[1] then return {'notfound'} end
if r[1] == 'absorbed' then return {'running'} end -- with another
if r[1] ~= 'waiting' then return {r[1]} end
local key = waiting_key(r[2])
local ahead = redis.call('ZRANK', key, id)
-- A running task stays in the set with score 0, see claim.lua. It has started already.
if redis.call('ZCOUNT', key, '0', '0') > 0 then ahead = ahead - 1 end
return {'ok', int(ahead)}
