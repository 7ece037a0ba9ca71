-- prefix, class, who -> {'ok'}
-- The key and the time are asynq's, whose workers and tools look only whether it exists.
redis.call('SET', queue_keys(ARGV[2]) .. 'paused', int(math.floor(now() / 1000000)) .. ' ' .. ARGV[3], 'NX')
redis.call('SADD', 'asynq:queues', ARGV[2])
return {'ok'}
