-- prefix, worker or host, who -> {'ok'}
redis.call('HSETNX', P .. 'cordoned', ARGV[2], int(math.floor(now() / 1000000)) .. ' ' .. ARGV[3])
return {'ok'}
