-- prefix, id, thread, fence, token, ttl ms, lease ms -> {'ok', cancel_by, cancel_cause} | {'stale'}
local id, thread, fence, token, ttl = ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local r = redis.call('HMGET', task_key(id), 'fence', 'held', 'cancel_by', 'cancel_cause', 'caps')
if r[1] ~= fence then return {'stale'} end
local claim = claim_key(thread)
local holder = redis.call('GET', claim)
if holder == token then
  redis.call('PEXPIRE', claim, ttl)
elseif not holder and r[2] == fence and (runner(thread) or id) == id then
  -- Redis came back without the claim, and the task was not taken over: Requeue, Return, Retry and Release delete
  -- "held". If the task has ended and the thread's next task runs by now, whose claim may be lost as well, it is too
  -- late to restore the claim.
  redis.call('SET', claim, token, 'PX', ttl)
  redis.call('HDEL', task_key(id), 'silent')
else
  return {'stale'}
end
if r[5] then hold(id, r[5], now(), ARGV[7]) end
return {'ok', r[3] or '', r[4] or ''}
