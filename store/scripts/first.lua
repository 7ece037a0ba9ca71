-- prefix, id, fence (empty: of a task that waits), key, nonce -> {'ok'} the first time | {'no'} | {'stale'}
if ARGV[3] == '' then
  if redis.call('HGET', task_key(ARGV[2]), 'state') ~= 'waiting' then return {'stale'} end
elseif not runs(ARGV[2], ARGV[3]) then
  return {'stale'}
end
local key, field = questions_key(ARGV[2]), 's:' .. ARGV[4]
redis.call('HSETNX', key, field, ARGV[5])
if redis.call('HGET', key, field) == ARGV[5] then return {'ok'} end -- also if the reply was lost
return {'no'}
