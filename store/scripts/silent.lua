-- prefix, id, fence, term -> {'ok', us without the claim} | {'stale'}
local id, fence, term = ARGV[2], ARGV[3], ARGV[4]
local r = redis.call('HMGET', task_key(id), 'state', 'thread', 'fence', 'silent')
if r[1] ~= 'running' or r[3] ~= fence or redis.call('EXISTS', claim_key(r[2])) == 1 then return {'stale'} end
redis.call('ZADD', RUNNING, fence, id) -- also of a run that was claimed by a version without the index
-- In another term of the leader, or of another run, nothing is known of the time since.
local t, mark = now(), '^' .. fence .. ' ' .. term .. ' (%d+)$'
local since = string.match(r[4] or '', mark)
if since then return {'ok', int(t - tonumber(since))} end
redis.call('HSET', task_key(id), 'silent', fence .. ' ' .. term .. ' ' .. int(t))
return {'ok', '0'}
