-- prefix, id, key, answer, message or '', nonce, ms to keep the message
--   -> {'ok', the first answer} | {'spent'} | {'ended'} | {'notfound'}
local id, key, message, mark = ARGV[2], ARGV[3], ARGV[5], ARGV[2] .. ' ' .. ARGV[6]
local questions = questions_key(id)
if redis.call('HEXISTS', questions, 'q:' .. key) == 0 then return {'notfound'} end
if redis.call('HGET', task_key(id), 'state') == 'ended' then return {'ended'} end
local spent = message ~= '' and redis.call('GET', spent_key(message))
if spent and spent ~= mark then return {'spent'} end
if redis.call('HSETNX', questions, 'a:' .. key, ARGV[4]) == 1 and message ~= '' then
  redis.call('SET', spent_key(message), mark, 'PX', ARGV[7]) -- a redelivered message is not a task either
end
redis.call('PUBLISH', P .. 'answers', id)
return {'ok', redis.call('HGET', questions, 'a:' .. key)}
