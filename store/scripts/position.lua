-- prefix, id -> {'ok', tasks of its thread that start before it}
local id = ARGV[2]
local r = redis.call('HMGET', task_key(id), 'state', 'thread')
if not r[1] then return {'notfound'} end
if r[1] == 'absorbed' then return {'running'} end -- in another task's run
if r[1] ~= 'waiting' then return {r[1]} end
local ahead = redis.call('ZRANK', waiting_key(r[2]), id)
if runner(r[2]) then ahead = ahead - 1 end -- the set contains it, but it has started already
return {'ok', int(ahead)}
