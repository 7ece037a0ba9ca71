-- prefix, id -> {'ok'}
if redis.call('EXISTS', task_key(ARGV[2])) == 0 then redis.call('DEL', pictures_key(ARGV[2])) end
return {'ok'}
