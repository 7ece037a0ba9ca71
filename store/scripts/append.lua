-- prefix, id, fence, event cap, events... -> {'ok'} | {'stale'}
local id = ARGV[2]
if not runs(id, ARGV[3]) then return {'stale'} end
emit(id, ARGV[4], 'data', ARGV, 5)
return {'ok'}
