-- prefix, id, delivery, worker, nonce, ttl ms, lease ms, the worker's clock, scopes of the worker, (scope or kind, cap)...
--   -> {'ok', token, record} | {'notdue', at} | {'full', scope, runs there, cap, place in line, last explanation, line that it left} |
--      {'busy', tasks before it if others than at its last refusal or if it was explained, last explanation} | another refusal
local id, delivery, worker, nonce, ttl, lease = ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7]
local key = task_key(id)
local r = redis.pcall('HMGET', key, 'state', 'thread', 'delivery', 'at', 'fence', 'scopes', 'explained', 'crashes', 'created', 'line', 'class', 'blocked')
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
if holder or head(thread) ~= id then
  local life = holder and (string.match(holder, '^lock %S+ (%d+)$') or string.match(holder, '^%d') and ttl)
  if life then shorten(claim, life) end
  if r[10] then unblock(id) end -- nothing waits behind it for a place that it cannot take
  local place = int(redis.call('ZRANK', waiting, id) or 0)
  local blocked = '0 0 ' .. place .. ' '
  block(id, blocked)
  if place ~= '0' and (r[7] or r[12] and r[12] ~= blocked) then return {'busy', place, r[7] or ''} end
  return {'busy'}
end
local places = {}
for scope in each((r[6] or '') .. '\n' .. ARGV[9]) do
  local cap = bound(scope, 10)
  if cap then
    local there = redis.call('ZCOUNT', cap_key(scope), int(t), '+inf')
    local place = place_in(id, scope, cap - there, t)
    if place > cap - there then
      block(id, int(there) .. ' ' .. int(cap) .. ' ' .. int(place) .. ' ' .. scope)
      return {'full', scope, int(there), int(cap), int(place), r[7] or '', r[10] and r[10] ~= scope and r[10] or ''}
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
  local waited = (t - math.max(tonumber(r[9] or t), tonumber(at or '0'))) / 1000000
  local order = 0
  while 2 ^ order < waited and order < 40 do order = order + 1 end
  tally('waited ' .. (r[11] or '') .. ' ' .. int(order), t)
end
begin_run(key, t, worker)
if doubtful(id, r[9]) then redis.call('HSET', key, 'doubt', '1') end
if tonumber(r[8] or '0') > 0 then -- see Claim.Idle
  redis.call('HSET', key, 'idle', '1')
  redis.call('HSETNX', key, 'crashed', int(t)) -- an older requeue.lua did not store it
end
unblock(id)
redis.call('HINCRBY', key, 'attempt', '1')
if #places > 0 then
  local caps = table.concat(places, '\n')
  redis.call('HSET', key, 'caps', caps)
  hold(id, caps, t, lease)
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
