-- prefix, id, fence, event cap, events... -> {'ok'} | {'stale'}
local id, cap = ARGV[2], ARGV[4]
if not runs(id, ARGV[3]) then return {'stale'} end
for i = 5, #ARGV do
  redis.call('XADD', events_key(id), 'MAXLEN', '=', cap, '*', 'data', ARGV[i])
end
redis.call('PUBLISH', NEWS, id)
return {'ok'}
