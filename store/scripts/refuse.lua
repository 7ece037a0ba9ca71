-- prefix, credential, why, for how long us -> {'ok'}
local name, t = ARGV[2], now()
local lapse = t + tonumber(ARGV[4])
redis.call('HSET', credential_key(name), 'refused', ARGV[3], 'lapse', int(lapse))
remember(name, lapse)
return {'ok'}
