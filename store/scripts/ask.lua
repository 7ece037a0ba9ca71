-- prefix, id, fence, key, question -> {'ok', answer or ''} | {'stale'}
local id, key = ARGV[2], ARGV[4]
if not runs(id, ARGV[3]) then return {'stale'} end
redis.call('HSETNX', questions_key(id), 'q:' .. key, ARGV[5])
return {'ok', redis.call('HGET', questions_key(id), 'a:' .. key) or ''}
