-- prefix, term, (id, fence)... -> {'ok', for each: us without the claim, '' if it has one or does not run}
local term, t, answer = ARGV[2], now(), {'ok'}
for i = 3, #ARGV, 2 do
  local id, fence, us = ARGV[i], ARGV[i + 1], ''
  local r = redis.pcall('HMGET', task_key(id), 'state', 'thread', 'fence', 'silent')
  if r[1] == 'running' and r[3] == fence and redis.call('EXISTS', claim_key(r[2])) == 0 then
    -- The stored time counts only for the same run and the same term of the leader.
    local since = string.match(r[4] or '', '^' .. fence .. ' ' .. term .. ' (%d+)$')
    if not since or tonumber(since) > t then -- Redis' clock went back
      since = int(t)
      redis.call('HSET', task_key(id), 'silent', fence .. ' ' .. term .. ' ' .. since)
    end
    us = int(t - tonumber(since))
  end
  table.insert(answer, us)
end
return answer
