-- prefix, id, delivery, worker, nonce, ttl ms, lease ms, the worker's clock, (kind of scope, cap)...
--   -> {'ok', token, record} | {'notdue', at} | {'full', scope, runs there, cap, place in line} | another refusal
local id, delivery, worker, nonce, ttl, lease = ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7]
local key = task_key(id)
local r = redis.pcall('HMGET', key, 'state', 'thread', 'delivery', 'at', 'fence', 'scopes', 'crashes', 'created', 'line', 'class')
local state, thread, at = r[1], r[2], r[4]
if not state or not thread then return {'notfound'} end -- or the key holds no record
local claim = claim_key(thread)
local holder = redis.call('GET', claim)

-- The client sends a command again if the reply was lost. The nonce distinguishes our own claim from another one.
if state == 'running' and holder == r[5] .. ' ' .. id .. ' ' .. nonce then
  return {'ok', holder, redis.call('HGETALL', key)}
end
if state == 'ended' then return {'ended'} end
if delivery ~= r[3] then return {'stale'} end
if state == 'running' or state == 'absorbed' then return {'running'} end
-- The time of a retry is by the clocks of workers, like that of its delivery.
if tonumber(at) > tonumber(ARGV[8]) then return {'notdue', at} end
local t, waiting = now(), waiting_key(thread)
-- refuse takes the task out of READY. Its delivery is used up: the worker drops it.
local function refuse(what)
  block(id, what)
  redis.call('ZREM', READY, id)
  redis.call('HINCRBY', key, 'delivery', '1')
end
if holder or head(thread) ~= id then
  bound_life(thread, ttl)
  if r[9] then leave(id) end -- nothing waits behind it for a place that it cannot take
  refuse('0 0 ' .. int(redis.call('ZRANK', waiting, id) or 0) .. ' ')
  return {'busy'}
end
local places = {}
for scope in each(r[6]) do
  local cap = bound(scope, 9)
  if cap then
    local there = redis.call('ZCOUNT', cap_key(scope), int(t), '+inf')
    local place = place_in(id, scope, cap - there, cap)
    if place > cap - there then
      refuse(int(there) .. ' ' .. int(cap) .. ' ' .. int(place) .. ' ' .. scope)
      if r[9] and r[9] ~= scope then call_up(r[9]) end
      return {'full', scope, int(there), int(cap), int(place)}
    end
    table.insert(places, scope)
  end
end

-- The fence follows the clock, so that it also grows after Redis came back without its last second (appendfsync
-- everysec, or a replica that took over). A counter would give out the fence of a live, forgotten holder again. If the
-- clock is behind, which it may be on another machine, a random step makes this unlikely.
local fence = tonumber(redis.call('GET', FENCE) or '0') + 1
if fence > t then fence = fence + tonumber(string.sub(redis.sha1hex(nonce), 1, 4), 16) end
fence = int(math.max(fence, t))
redis.call('SET', FENCE, fence)
redis.call('HSET', key, 'state', 'running', 'worker', worker, 'started', int(t), 'fence', fence, 'held', fence)
redis.call('HDEL', key, 'why')
if r[5] == '0' then -- its first run: count how long it was due
  local waited = (t - math.max(tonumber(r[8] or t), tonumber(at or '0'))) / 1000000
  local order = 0
  while 2 ^ order < waited and order < 40 do order = order + 1 end
  tally('waited ' .. (r[10] or '') .. ' ' .. int(order), t)
end
begin_run(key, t, worker)
if doubtful(id, r[8]) then redis.call('HSET', key, 'doubt', '1') end
if tonumber(r[7] or '0') > 0 then -- see Claim.Idle
  redis.call('HSET', key, 'idle', '1')
end
unblock(id)
redis.call('HINCRBY', key, 'attempt', '1')
if #places > 0 then
  local caps = table.concat(places, '\n')
  redis.call('HSET', key, 'caps', caps)
  hold(id, caps, t, lease)
  for _, scope in ipairs(places) do call_up(scope) end -- its cap may have been raised
end
-- Score 0 keeps the running task at the head, even if a task with an older ID arrives late. So no other task can claim
-- the thread, even if Redis lost the claim.
redis.call('ZADD', waiting, '0', id)
redis.call('ZADD', RUNNING, fence, id)
redis.call('ZREM', READY, id)
redis.call('ZREMRANGEBYRANK', thread_key(thread), '0', '-201') -- submit.lua only adds
local token = fence .. ' ' .. id .. ' ' .. nonce
redis.call('SET', claim, token, 'PX', ttl)
return {'ok', token, redis.call('HGETALL', key)}
