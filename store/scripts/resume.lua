-- prefix, class -> {'ok'}
redis.call('SADD', 'asynq:queues', ARGV[2])
for _, queue in ipairs(redis.call('SMEMBERS', 'asynq:queues')) do
  if class_of(queue) == ARGV[2] then
    redis.call('DEL', queue_keys(queue) .. 'paused')
    redis.call('PUBLISH', P .. 'due', queue)
  end
end
return {'ok'}
