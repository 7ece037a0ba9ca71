-- prefix, id, thread, fence, absorbed IDs, close -> {'ok'} | {'stale'}
local id, thread, fence = ARGV[2], ARGV[3], ARGV[4]
if not runs(id, fence) then return {'stale'} end
local back, stay = set(ARGV[5]), {}
for _, other in ipairs(redis.call('ZRANGE', absorbed_key(id), '0', '-1')) do
  if not back[other] then stay[other] = true end
end
part(id, thread, stay)
if ARGV[6] == '1' then redis.call('HSET', task_key(id), 'closed', fence) end
return {'ok'}
