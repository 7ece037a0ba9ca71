-- prefix, id, ending, event cap -> {'ok'} | {'no'} | {'notfound'}
local id = ARGV[2]
local r = redis.call('HMGET', task_key(id), 'state', 'thread')
if not r[1] then return {'notfound'} end
if r[1] ~= 'waiting' then return {'no'} end
finish(id, r[2], ARGV[3], ARGV[4], 0)
return {'ok'}
