-- prefix, ttl ms, ids... -> {'ok'}
-- Makes tasks ready that wait for nothing, or whose turn it is, although no step has said so: a claim has expired, another
-- version stored them, or Redis lost a part. The caller's view may be old.
for i = 3, #ARGV do
  local id = ARGV[i]
  local r = redis.pcall('HMGET', task_key(id), 'state', 'thread', 'line', 'blocked')
  if r[1] == 'waiting' and r[2] then
    bound_life(r[2], ARGV[2])
    if r[3] and not redis.call('ZSCORE', line_key(r[3]), id) then unblock(id) end
    if r[4] then next_up(r[2]) else make_ready(id) end
  end
end
return {'ok'}
