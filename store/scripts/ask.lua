-- prefix, id, fence, key, question -> {'ok', answer or ''} | {'stale'}
local id, key = ARGV[2], ARGV[4]
if not runs(id, ARGV[3]) then return {'stale'} end
local questions = questions_key(id)
redis.call('HSET', questions, 'q:' .. key, ARGV[5], 'f:' .. key, ARGV[3])
return {'ok', redis.call('HGET', questions, 'a:' .. key) or ''}
