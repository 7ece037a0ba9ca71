-- prefix, id, thread, fence, token, ttl ms, lease ms -> {'ok', cancel_by, cancel_cause} | {'stale'}
local id, thread, fence, token, ttl = ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local r = redis.call('HMGET', task_key(id), 'state', 'fence', 'held', 'cancel_by', 'cancel_cause', 'caps')
if r[2] ~= fence then return {'stale'} end
local claim = claim_key(thread)
local holder = redis.call('GET', claim)
if holder == token then
  redis.call('PEXPIRE', claim, ttl)
elseif not holder and r[3] == fence then
  -- Redis came back without the claim, and nobody has taken the task over: "held" goes with Requeue, Return, Retry and Release.
  redis.call('SET', claim, token, 'PX', ttl)
else
  return {'stale'}
end
hold(id, r[6], now(), ARGV[7])
return {'ok', r[4] or '', r[5] or ''}
