-- prefix, the key of what is halted, class, worker or host, who -> {'ok'}
redis.call('HSETNX', ARGV[2], ARGV[3], int(math.floor(now() / 1000000)) .. ' ' .. ARGV[4])
return {'ok'}
