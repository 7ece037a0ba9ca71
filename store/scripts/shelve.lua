-- prefix, id, body, us until due, ttl ms, most kept -> {'ok'} the first time | {'no'} it was there, and has another body now
local id, t = ARGV[2], now()
local added = redis.call('ZADD', SHELF, 'NX', int(t + tonumber(ARGV[4])), id)
redis.call('SET', shelf_key(id), ARGV[3], 'PX', ARGV[5])
while redis.call('ZCARD', SHELF) > tonumber(ARGV[6]) do
  redis.call('DEL', shelf_key(redis.call('ZPOPMIN', SHELF)[1]))
end
if added == 1 then return {'ok'} end
return {'no'}
