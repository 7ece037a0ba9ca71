-- prefix, the caller's clock, when to look again, how many
--   -> {'ok', (id, pool, class, delivery, '1' if it was just called from a line)...}
-- The scores are by the clocks of workers, like the times of retries, and 0 is at once, so that Redis' clock may jump.
local reply = {'ok'}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', READY, '-inf', ARGV[2], 'LIMIT', '0', ARGV[4])) do
  local r = redis.pcall('HMGET', task_key(id), 'state', 'pool', 'class', 'delivery', 'awaited')
  if r[1] ~= 'waiting' then
    redis.call('ZREM', READY, id)
  else
    local called = r[5] and now() - tonumber(r[5]) < 5000000 -- not one that Submit called, which has not waited
    redis.call('ZADD', READY, ARGV[3], id)
    for _, value in ipairs({id, r[2] or '', r[3] or '', r[4], called and '1' or ''}) do table.insert(reply, value) end
  end
end
return reply
