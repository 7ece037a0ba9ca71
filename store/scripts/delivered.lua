-- prefix, when to look again, (id, delivery)... -> {'ok'}
for i = 3, #ARGV, 2 do
  local r = redis.pcall('HMGET', task_key(ARGV[i]), 'state', 'delivery')
  if r[1] == 'waiting' and r[2] == ARGV[i + 1] then redis.call('ZADD', READY, 'XX', ARGV[2], ARGV[i]) end
end
return {'ok'}
