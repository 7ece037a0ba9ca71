-- prefix, id, key -> {'ok'}
local key = task_key(ARGV[2])
if redis.call('EXISTS', key) == 1 then redis.call('HSET', key, 'explained', ARGV[3]) end
return {'ok'}
