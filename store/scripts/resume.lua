-- prefix, class -> {'ok'}
redis.call('DEL', queue_keys(ARGV[2]) .. 'paused')
redis.call('PUBLISH', P .. 'due', ARGV[2])
return {'ok'}
