-- prefix, queue, delivery, asynq's message, at -> {'ok'}
local queue = queue_keys(ARGV[2])
if redis.call('EXISTS', delivery_key(queue, ARGV[3])) == 0 then push(queue, ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5]), now()) end
return {'ok'}
