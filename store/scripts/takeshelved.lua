-- prefix, lease us -> {'ok', id, body} | {'no'}
local t = now()
while true do
  local id = redis.call('ZRANGEBYSCORE', SHELF, '-inf', int(t), 'LIMIT', '0', '1')[1]
  if not id then return {'no'} end
  local body = redis.call('GET', shelf_key(id))
  if body then
    redis.call('ZADD', SHELF, int(t + tonumber(ARGV[2])), id)
    return {'ok', id, body}
  end
  redis.call('ZREM', SHELF, id) -- it was not due within its life
end
