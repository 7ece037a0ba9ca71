-- prefix, id, ttl ms, (n, picture)... -> {'ok'} if they are stored, or their task is | {'no'}
-- Submit makes them live as long as the task, so this step does not bound their life after it.
local key = pictures_key(ARGV[2])
if redis.call('EXISTS', task_key(ARGV[2])) == 1 then return {'ok'} end
if ARGV[4] then redis.call('HSET', key, unpack(ARGV, 4)) end
return {redis.call('PEXPIRE', key, ARGV[3]) == 1 and 'ok' or 'no'}
