-- prefix, ttl ms, ids... -> {'ok'}
-- Makes waiting tasks ready whose turn it is although no step has said so: a claim has expired, or Redis lost a part.
for i = 3, #ARGV do
  local id = ARGV[i]
  local r = redis.pcall('HMGET', task_key(id), 'state', 'thread', 'line')
  if r[1] == 'waiting' and r[2] then
    bound_life(r[2], ARGV[2])
    if r[3] and not redis.call('ZSCORE', line_key(r[3]), id) then unblock(id) end
    next_up(r[2])
  end
end
return {'ok'}
