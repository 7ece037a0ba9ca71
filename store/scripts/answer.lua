-- prefix, id, key, answer, message or '' -> {'ok', the answer that stands} | {'spent'} | {'ended'} | {'notfound'}
local id, key, message = ARGV[2], ARGV[3], ARGV[5]
local questions = questions_key(id)
if redis.call('HEXISTS', questions, 'q:' .. key) == 0 then return {'notfound'} end
if redis.call('HGET', task_key(id), 'state') == 'ended' then return {'ended'} end
if message ~= '' and redis.call('EXISTS', spent_key(message)) == 1 then return {'spent'} end
if redis.call('HSETNX', questions, 'a:' .. key, ARGV[4]) == 1 and message ~= '' then
  redis.call('SET', spent_key(message), id, 'EX', '86400') -- what comes again is not a task either
end
redis.call('PUBLISH', P .. 'answers', id)
return {'ok', redis.call('HGET', questions, 'a:' .. key)}
