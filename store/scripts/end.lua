-- prefix, id, thread, fence, ending, event cap, retention ms, IDs that end with it, their ending -> {'ok', its checkpoint, if that is an object} | {'stale'}
local id, thread, fence = ARGV[2], ARGV[3], ARGV[4]
if runs(id, fence) then
  local old = replaced(checkpoint_key(id), 'body', '')
  local with = part(id, thread, set(ARGV[8]))
  finish(id, thread, ARGV[5], ARGV[6], 10000000)
  cover(id, with, ARGV[9], ARGV[6], ARGV[7])
  redis.call('DEL', absorbed_key(id))
  return {'ok', old}
end
-- This holder has ended it already, and the reply was lost.
local r = redis.call('HMGET', task_key(id), 'state', 'held')
if r[1] == 'ended' and r[2] == fence then return {'ok'} end
return {'stale'}
