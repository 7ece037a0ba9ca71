-- prefix, id -> {'ok', the dropped values...}
local reply = {'ok'}
if redis.call('EXISTS', task_key(ARGV[2])) == 0 then
  for _, value in ipairs(redis.call('HVALS', pictures_key(ARGV[2]))) do reply[#reply + 1] = value end
  redis.call('DEL', pictures_key(ARGV[2]))
end
return reply
