-- prefix, id, delivery, key, event, interval us, event cap -> {'ok', record} | {'no'} | {'no', us until the interval is over}
local id, key, t = ARGV[2], task_key(ARGV[2]), now()
local r = redis.call('HMGET', key, 'state', 'delivery', 'explained', 'explained_at', 'early')
if r[1] ~= 'waiting' or r[2] ~= ARGV[3] or r[3] == ARGV[4] then return {'no'} end
local early = r[4] and tonumber(r[4]) + tonumber(ARGV[6]) - t or 0
if early > 0 and early <= tonumber(ARGV[6]) then return {'no', int(early)} end
redis.call('HSET', key, 'explained', ARGV[4], 'explained_at', int(t))
local events = r[5] or ''
if #events > 2000 or redis.call('EXISTS', events_key(id)) == 1 then
  emit(id, ARGV[7], 'data', {ARGV[5]})
  return {'ok', redis.call('HGETALL', key)}
end
-- Redis allocates 4 KB for a stream. A task that waits does without one, as there may be many. The IDs are those that a
-- stream would give: they follow the clock, but never go back.
local ms, n = string.match(events, '(%d+)-(%d+) [^\n]*$')
local at = math.floor(t / 1000)
if ms and tonumber(ms) >= at then at, n = tonumber(ms), n + 1 else n = 0 end
redis.call('HSET', key, 'early', (events ~= '' and events .. '\n' or '') .. int(at) .. '-' .. int(n) .. ' ' .. string.gsub(ARGV[5], '\n', ' '))
redis.call('PUBLISH', NEWS, id)
return {'ok', redis.call('HGETALL', key)}
