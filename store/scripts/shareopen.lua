-- prefix, worker, what its open runs have spent, empty = nothing, ttl ms -> {'ok', the same of each other live worker...}
local others = {'ok'}
for _, worker in ipairs(redis.call('ZRANGE', P .. 'workers', 0, -1)) do
  local spent = worker ~= ARGV[2] and redis.call('GET', P .. 'open:' .. worker)
  if spent then others[#others + 1] = spent end
end
if ARGV[3] == '' then
  redis.call('DEL', P .. 'open:' .. ARGV[2])
else
  redis.call('SET', P .. 'open:' .. ARGV[2], ARGV[3], 'PX', ARGV[4])
end
return others
