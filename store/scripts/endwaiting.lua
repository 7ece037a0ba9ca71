-- prefix, id, ending, event cap, retention ms, nonce, only if never begun -> {'ok'} | {'no'} | {'notfound'}
local id = ARGV[2]
local r = redis.call('HMGET', task_key(id), 'state', 'thread', 'fence')
if not r[1] then return {'notfound'} end
if repeated(id, ARGV[6]) then return {'ok'} end
if r[1] ~= 'waiting' or ARGV[7] == '1' and r[3] ~= '0' then return {'no'} end
-- The tasks that a waiting task has absorbed are those in its checkpoint. They end with it.
local with = part(id, r[2], set(table.concat(redis.call('ZRANGE', absorbed_key(id), '0', '-1'), ' ')))
note(id, ARGV[6])
finish(id, r[2], ARGV[3], ARGV[4], 0)
cover(id, with, ARGV[3], ARGV[4], ARGV[5])
redis.call('DEL', absorbed_key(id))
next_up(r[2])
return {'ok'}
