-- prefix, the caller's clock, when to look again for the deliveries of this call, likewise for those of earlier calls, how many
--   -> {'ok', (id, pool, class, delivery, '1' if it was just called from a line)...}
-- The scores are by the clocks of workers, like the times of retries, and 0 is at once, so that Redis' clock may jump.
local reply = {'ok'}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', READY, '-inf', ARGV[2], 'LIMIT', '0', ARGV[5])) do
  local r = redis.pcall('HMGET', task_key(id), 'state', 'pool', 'class', 'delivery', 'delivered', 'awaited')
  if r[1] ~= 'waiting' then
    redis.call('ZREM', READY, id)
  else
    local called = r[6] and now() - tonumber(r[6]) < 5000000 -- not one that Submit called, which has not waited
    local again = r[4] == r[5]
    if not again then redis.call('HSET', task_key(id), 'delivered', r[4]) end
    redis.call('ZADD', READY, again and ARGV[4] or ARGV[3], id)
    for _, value in ipairs({id, r[2] or '', r[3] or '', r[4], called and '1' or ''}) do table.insert(reply, value) end
  end
end
return reply
