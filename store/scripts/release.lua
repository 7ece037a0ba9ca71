-- prefix, id, thread, fence, token -> {'ok'} | {'stale'}
local id, fence, token = ARGV[2], ARGV[4], ARGV[5]
local claim, key = claim_key(ARGV[3]), task_key(id)
-- Delete "held", so that a refresh that is still on its way cannot restore the claim.
if redis.call('HGET', key, 'held') == fence then redis.call('HDEL', key, 'held') end
local holder = redis.call('GET', claim)
if holder == token then
  redis.call('DEL', claim)
elseif holder then
  return {'stale'}
end
next_up(ARGV[3])
return {'ok'}
