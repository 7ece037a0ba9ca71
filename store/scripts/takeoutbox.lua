-- prefix, id or '', lease us, nonce, sources or '' for all -> {'ok', id, attempt, delivery} | {'no'}
local t, id, sources = now(), ARGV[2], set(ARGV[5])

-- first_due returns the ID that has been due longest, of those from the sources. A day after its end it may be from
-- another one: no worker seems to have its source, and somebody has to give it up.
local function first_due()
  local found, since
  for _, source in ipairs(redis.call('SMEMBERS', OUTBOX .. 'es')) do
    local first, due = unpack(redis.call('ZRANGEBYSCORE', outbox_of(source), '-inf', int(t), 'WITHSCORES', 'LIMIT', '0', '1'))
    if first and ARGV[5] ~= '' and source ~= '' and not sources[source] then
      local ended = redis.pcall('HGET', task_key(first), 'ended')
      if type(ended) == 'string' and (tonumber(ended) or 0) >= t - 86400000000 then first = nil end
    end
    if first and (not found or tonumber(due) < since) then found, since = first, tonumber(due) end
  end
  return found
end

-- If Redis' clock was set, or no worker looked for a minute, nothing says whether the leases are over: everything that
-- was not due the last time is due in a minute.
local looked = tonumber(redis.call('GET', P .. 'looked') or t)
if t < looked or t > looked + tonumber(ARGV[3]) then
  for _, later in ipairs(redis.call('ZRANGEBYSCORE', OUTBOX, '(' .. int(math.min(looked, t)), '+inf')) do
    due_at(later, t + tonumber(ARGV[3]))
  end
end
redis.call('SET', P .. 'looked', int(t))
local delivery
repeat
  if ARGV[2] == '' then
    id = first_due()
    if not id then return {'no'} end
  else
    local due, r = redis.call('ZSCORE', OUTBOX, id), redis.call('HMGET', task_key(id), 'outbox', 'delivery')
    if due and repeated(id, ARGV[4]) then return {'ok', id, r[1], r[2]} end
    if not due or tonumber(due) > t and r[1] ~= '0' then return {'no'} end
  end
  delivery = redis.pcall('HGET', task_key(id), 'delivery')
  if type(delivery) ~= 'string' then delivery = nil end
  -- The record is gone or is no record. Incrementing its attempts would create an incomplete one.
  if not delivery then undue(id) end
until delivery
note(id, ARGV[4])
due_at(id, t + tonumber(ARGV[3]))
-- The attempt is the lease's token: when another poster takes the item, the earlier lease is void.
local attempt = redis.call('HINCRBY', task_key(id), 'outbox', '1')
return {'ok', id, int(attempt), delivery}
