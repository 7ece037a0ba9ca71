-- prefix, id, fence, name, data, parts kept, retention ms -> {'ok', the values that are gone, if objects…} | {'notfound'}
local id, name = ARGV[2], ARGV[4]
if redis.call('EXISTS', task_key(id)) == 0 then return {'notfound'} end
local key = log_key(id)
local answer = {'ok', replaced(key, ARGV[3] .. ' ' .. name, ARGV[5])}
redis.call('HSET', key, ARGV[3] .. ' ' .. name, ARGV[5])
-- Fences have as many digits as the clock that they follow, so they sort as text.
local parts = {}
for _, field in ipairs(redis.call('HKEYS', key)) do
  if string.match(field, ' (.*)$') == name then parts[#parts + 1] = field end
end
table.sort(parts)
for i = 1, #parts - tonumber(ARGV[6]) do
  answer[#answer + 1] = replaced(key, parts[i], '')
  redis.call('HDEL', key, parts[i])
end
redis.call('PEXPIRE', key, ARGV[7])
return answer
