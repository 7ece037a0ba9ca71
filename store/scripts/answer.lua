-- prefix, id, key, answer -> {'ok', the answer that stands} | {'ended'} | {'notfound'}
local id, key = ARGV[2], ARGV[3]
local questions = questions_key(id)
if redis.call('HEXISTS', questions, 'q:' .. key) == 0 then return {'notfound'} end
if redis.call('HGET', task_key(id), 'state') == 'ended' then return {'ended'} end
redis.call('HSETNX', questions, 'a:' .. key, ARGV[4])
redis.call('PUBLISH', P .. 'answers', id)
return {'ok', redis.call('HGET', questions, 'a:' .. key)}
