-- prefix, class, who -> {'ok'}
-- It pauses the class in all pools. The key and the time are asynq's, whose workers and tools look only whether it exists.
redis.call('SADD', 'asynq:queues', ARGV[2])
for _, queue in ipairs(redis.call('SMEMBERS', 'asynq:queues')) do
  if class_of(queue) == ARGV[2] then redis.call('SET', queue_keys(queue) .. 'paused', int(math.floor(now() / 1000000)) .. ' ' .. ARGV[3], 'NX') end
end
return {'ok'}
