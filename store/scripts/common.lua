-- Definitions that scripts share. link in scripts.go prepends to each script the ones that it uses. ARGV[1] is always
-- the prefix of all keys; keys.go documents every key. Numbers that only pass through stay strings: Lua would write
-- microseconds as 1.7e+15.

local P = ARGV[1]
local LIVE, TASKS, OUTBOX = P .. 'live', P .. 'tasks', P .. 'outbox'
local EXPIRING, FENCE, CREDENTIALS = P .. 'expiring', P .. 'fence', P .. 'credentials'
local RUNNING, JOINED = P .. 'running', P .. 'joined' -- counted by Counts
local UNDELIVERED, READY, LINES = P .. 'undelivered', P .. 'ready', P .. 'linecaps'
local NEWS = P .. 'news' -- a channel

local function task_key(id) return P .. 'task:' .. id end
local function events_key(id) return P .. 'events:' .. id end
local function questions_key(id) return P .. 'questions:' .. id end
local function pictures_key(id) return P .. 'pictures:' .. id end
local function log_key(id) return P .. 'log:' .. id end
local function votes_key(id) return P .. 'votes:' .. id end
local function spent_key(id) return P .. 'spent:' .. id end
local function claim_key(thread) return P .. 'claim:' .. thread end
local function waiting_key(thread) return P .. 'waiting:' .. thread end
local function alias_key(name) return P .. 'alias:' .. name end
local function thread_key(thread) return P .. 'thread:' .. thread end
local function topic_key(thread) return P .. 'topic:' .. thread end
local function session_key(thread) return P .. 'session:' .. thread end
local function checkpoint_key(id) return P .. 'checkpoint:' .. id end
local function cap_key(scope) return P .. 'cap:' .. scope end
local function spend_key(day, scope) return P .. 'spend:' .. day .. ':' .. scope end
local function costs_key(day) return P .. 'costs:' .. day end
local function line_key(scope) return P .. 'line:' .. scope end
local function tally_key(day) return P .. 'tally:' .. day end

local function credential_key(name) return P .. 'credential:' .. name end
local function absorbed_key(id) return P .. 'absorbed:' .. id end

local function int(n) return string.format('%.0f', n) end

-- now returns Redis' clock in Unix microseconds, the only clock that all workers share.
local function now()
  local t = redis.call('TIME')
  return tonumber(t[1]) * 1000000 + tonumber(t[2])
end

-- shorten bounds the rest of a key's life. It would be longer if Redis' clock went back.
local function shorten(key, ms)
  if redis.call('PTTL', key) > tonumber(ms) then redis.call('PEXPIRE', key, ms) end
end

-- born returns the Unix microseconds that an ID starts with, which order the tasks of a thread.
local function born(id) return string.match(id, '^%d+') end

-- taken_over returns since when this process of Redis has the data, when the data began, or when a worker noticed that
-- all of it was lost. After a fail-over, or a crash with appendfsync everysec, it may lack the last writes of the process
-- before. Data without an epoch is new or was emptied: it began just now. The process is '' in miniredis, or if the user
-- may not use INFO. It also returns what the newest ID began with then: the clock may be behind that of the process before.
local function taken_over()
  local info = redis.pcall('INFO', 'server')
  local process = type(info) == 'string' and string.match(info, 'run_id:(%x+)') or ''
  local r = redis.call('HMGET', P .. 'epoch', 'process', 'since', 'lost', 'newest')
  local since, newest = tonumber(r[2] or '0'), tonumber(r[4] or '0')
  if not r[1] or process ~= '' and r[1] ~= process then
    if r[1] ~= '' then since = now() end
    local last = r[1] and r[1] ~= '' and redis.call('ZRANGE', TASKS, '-1', '-1')[1]
    newest = last and tonumber(born(last)) or 0
    redis.call('HSET', P .. 'epoch', 'process', process, 'since', int(since), 'newest', int(newest))
  end
  return math.max(since, tonumber(r[3] or '0')), newest
end

-- doubtful reports whether a task may have run or ended before, if Redis has lost that: it was stored before such a
-- loss, or after it from an event before it.
local function doubtful(id, created)
  local since, newest = taken_over()
  local begun = tonumber(born(id))
  return math.min(tonumber(created or '0'), begun) < since or begun <= newest
end

-- replaced returns the value of a field if that is an object (see values.go) that the new value replaces, or ''.
local function replaced(key, field, new)
  local old = redis.call('HGET', key, field)
  return old and old ~= new and string.sub(old, 1, 1) == 'o' and old or ''
end

-- tally counts an event in the hour of t; see tally.go.
local function tally(what, t)
  local key = tally_key(int(math.floor(t / 86400000000)))
  redis.call('HINCRBY', key, int(math.floor(t / 3600000000) % 24) .. ' ' .. what, '1')
  redis.call('EXPIRE', key, '691200')
end

-- tally_ending counts an ending. Endings are opaque but for their first field.
local function tally_ending(ending, t) tally('ended ' .. (string.match(ending, '^{"kind":"([%l_]+)"') or 'failed'), t) end

-- day returns the UTC day of a time, as days since 1970.
local function day(t) return int(math.floor(t / 86400000000)) end

-- runs reports whether this fence still has the right to run the task. If so, the thread's claim belongs to it or is
-- lost, but is never another's: the running task is the head of its thread, and only the head can be claimed.
local function runs(id, fence)
  local r = redis.call('HMGET', task_key(id), 'state', 'held')
  return r[1] == 'running' and r[2] == fence
end

-- repeated reports whether the client sends a command again because the reply was lost. It compares the nonce of the
-- last step that stored one.
local function repeated(id, nonce) return redis.call('HGET', task_key(id), 'nonce') == nonce end
local function note(id, nonce) redis.call('HSET', task_key(id), 'nonce', nonce) end

-- runner returns the thread's running task, or nil: claim.lua gives it the score 0.
local function runner(thread) return redis.call('ZRANGEBYSCORE', waiting_key(thread), '0', '0')[1] end

-- head returns the task of a thread that runs or starts next. It removes tasks whose record is gone or is not a task
-- of this thread, because they would block the thread forever.
local function head(thread)
  while true do
    local id = redis.call('ZRANGE', waiting_key(thread), '0', '0')[1]
    if not id or redis.pcall('HGET', task_key(id), 'thread') == thread then return id end
    redis.call('ZREM', waiting_key(thread), id)
  end
end

-- bound_life bounds the rest of the life of a thread's claim, which ends ttl ms after its last renewal.
local function bound_life(thread, ttl)
  local holder = redis.call('GET', claim_key(thread))
  local life = holder and (string.match(holder, '^lock %S+ (%d+)$') or string.match(holder, '^%d') and ttl)
  if life then shorten(claim_key(thread), life) end
end

-- each iterates over a list in a field, one entry per line.
local function each(list) return string.gmatch(list or '', '[^\n]+') end

-- The newest events of a task have at most this many bytes together.
local EVENT_BYTES = 4 * 1024 * 1024

-- written returns how many bytes of events a stream had got up to an entry of it, which is its second field.
local function written(entry) return entry and tonumber(entry[2][4]) or 0 end

-- drop_oldest drops the oldest events of a stream beyond EVENT_BYTES. sum is what the stream has got.
local function drop_oldest(stream, sum)
  while true do
    local old = {}
    for _, entry in ipairs(redis.call('XRANGE', stream, '-', '+', 'COUNT', '10')) do
      local before = written(entry) - #entry[2][2]
      if sum - before <= EVENT_BYTES then break end
      old[#old + 1] = entry[1]
    end
    if #old == 0 then return end
    redis.call('XDEL', stream, unpack(old))
  end
end

-- emit appends values to a task's events, from the first on.
local function emit(id, cap, field, values, first)
  local stream = events_key(id)
  local sum = written(redis.call('XREVRANGE', stream, '+', '-', 'COUNT', 1)[1])
  for i = first or 1, #values do
    sum = sum + #values[i]
    redis.call('XADD', stream, 'MAXLEN', '=', cap, '*', field, values[i], 'sum', string.format('%.0f', sum))
  end
  if sum > EVENT_BYTES then drop_oldest(stream, sum) end
  redis.call('PUBLISH', NEWS, id)
end

-- The field runs of a record has a line for each of the latest runs: when it began and its worker, and for a run that
-- ended without an ending, when and why. Tabs separate them.
local function begin_run(key, t, worker)
  local lines = {}
  for line in each(redis.call('HGET', key, 'runs') or '') do table.insert(lines, line) end
  table.insert(lines, int(t) .. '\t' .. worker)
  if #lines > 20 then table.remove(lines, 1) end
  redis.call('HSET', key, 'runs', table.concat(lines, '\n'))
end

local function end_run(key, why)
  local lines = redis.call('HGET', key, 'runs')
  if lines then redis.call('HSET', key, 'runs', lines .. '\t' .. int(now()) .. '\t' .. string.gsub(why, '%s', ' ')) end
end

-- untake forgets that a run was to be taken over, which has ended without an ending: its work is in the checkpoint, and
-- another run has to continue it.
local function untake(key)
  if redis.call('HGET', key, 'cancel_cause') == 'taken' then redis.call('HDEL', key, 'cancel_by', 'cancel_cause') end
end

-- bound returns the limit of a scope, or nil. The arguments from ARGV[first] on are pairs of a scope, or a kind ending
-- in a colon, and a limit.
local function bound(scope, first)
  local kind = string.match(scope, '^[^:]*:')
  for i = first, #ARGV, 2 do
    if ARGV[i] == scope or ARGV[i] == kind then return tonumber(ARGV[i + 1]) end
  end
end

-- overbudget returns the answer that at t a budget of these scopes or of the fleet is used up, or nil. The arguments from
-- ARGV[first] on are the budgets, as for bound.
local function overbudget(scopes, first, t)
  for scope in each('fleet\n' .. scopes) do
    local budget = bound(scope, first)
    local spent = budget and tonumber(redis.call('HGET', spend_key(day(t), scope), 'spent') or '0')
    if budget and spent >= budget then return {'overbudget', scope, int(spent), '0', int(budget)} end
  end
end

-- hold counts a running task in these scopes until lease milliseconds after t.
local function hold(id, scopes, t, lease)
  for scope in each(scopes) do
    local key = cap_key(scope)
    redis.call('ZREMRANGEBYSCORE', key, '-inf', int(t))
    redis.call('ZADD', key, int(t + tonumber(lease) * 1000), id)
    redis.call('PEXPIRE', key, lease)
  end
end

-- free_reservation releases the run's reservations in its budgets.
local function free_reservation(id)
  local key = task_key(id)
  local r = redis.call('HMGET', key, 'reserved', 'scopes')
  if not r[1] then return end
  for scope in each('fleet\n' .. (r[2] or '')) do redis.call('HDEL', spend_key(r[1], scope), 'r:' .. id) end
  redis.call('HDEL', key, 'reserved')
end

-- A waiting task is in READY if it may start or has to wait for a time only: it has a delivery, or gets one. A task that
-- waits for its thread or for a place is blocked: it is not in READY, and the step that makes room for it puts it there.
-- What a crash has prevented is repaired by wake.lua and callup.lua.

-- block stores why a waiting task is blocked: "<runs> <cap> <place> <scope>", or "0 0 <tasks before it> " if it waits
-- for its thread.
local function block(id, what)
  if redis.call('HGET', task_key(id), 'blocked') ~= what then redis.call('HSET', task_key(id), 'blocked', what) end
end

-- make_ready puts a waiting task into READY if it is blocked.
local function make_ready(id)
  redis.call('ZADD', READY, 'NX', redis.call('HGET', task_key(id), 'at') or '0', id)
end

-- unblock makes a task leave its line and forget why it was blocked. It returns the scope of the line, or nil.
local function unblock(id)
  local scope = redis.call('HGET', task_key(id), 'line')
  if scope then redis.call('ZREM', line_key(scope), id) end
  redis.call('HDEL', task_key(id), 'blocked', 'line', 'awaited')
  return scope
end

-- first_in returns the task that has waited longest for a place in a scope, or nil. It removes tasks whose record is
-- gone.
local function first_in(scope)
  while true do
    local id = redis.call('ZRANGE', line_key(scope), '0', '0')[1]
    if not id or redis.pcall('HGET', task_key(id), 'line') == scope then return id end
    redis.call('ZREM', line_key(scope), id)
  end
end

-- count_crash counts a run that was lost with its worker. A task that has lost one, and with it its place, comes first
-- in a line until it runs again (idle.lua); one that has lost several may be the cause.
local function count_crash(id)
  local first = redis.call('HINCRBY', task_key(id), 'crashes', '1') == 1
  redis.call('HSET', task_key(id), 'crashed', int(now()), 'first', first and '1' or '0')
end

-- line_up adds a task to the line of a scope with a cap and returns its place, from 1. Those that come first are
-- followed by the others in the order of the classes and of the IDs. A score is exact to 2 us, and Redis orders equal
-- ones by the IDs themselves.
local function line_up(id, scope, cap)
  local r = redis.call('HMGET', task_key(id), 'line', 'class', 'awaited', 'first')
  if r[1] ~= scope then
    if r[1] then redis.call('ZREM', line_key(r[1]), id) end
    redis.call('HSET', task_key(id), 'line', scope)
  end
  if r[3] then redis.call('HDEL', task_key(id), 'awaited') end
  local urgency = {interactive = 0, review = 1, background = 2}
  local rank = r[4] == '1' and -1 or urgency[r[2]] or 3
  redis.call('ZADD', line_key(scope), int(born(id) + 4000000000000000 * rank), id)
  redis.call('HSET', LINES, scope, int(cap))
  first_in(scope)
  return redis.call('ZRANK', line_key(scope), id) + 1
end

-- call_up makes the first tasks in the line of a scope ready, as many as there are free places by the cap in LINES. A
-- task that has not come five seconds after it was called leaves the line, so that it holds up no other; at once if its
-- class is paused or its pool has no worker. It keeps its delivery, and lines up again if that is refused.
local function call_up(scope)
  if not first_in(scope) then return end
  local t, cap = now(), tonumber(redis.call('HGET', LINES, scope) or '1')
  local free, i = math.min(cap - redis.call('ZCOUNT', cap_key(scope), int(t), '+inf'), 100), 0
  for _ = 1, 1000 do
    local id = i < free and redis.call('ZRANGE', line_key(scope), int(i), int(i))[1]
    if not id then return end
    local r = redis.pcall('HMGET', task_key(id), 'line', 'awaited', 'pool', 'class')
    local since = tonumber(r[2] or '0')
    if r[1] ~= scope then
      redis.call('ZREM', line_key(scope), id)
    else
      make_ready(id)
      if since == 0 or since > t then -- Redis' clock went back
        since = t
        redis.call('HSET', task_key(id), 'awaited', int(t))
        redis.call('HDEL', task_key(id), 'blocked')
      end
      local pool = P .. 'pool:' .. (r[3] and r[3] ~= '' and r[3] or 'default')
      local closed = redis.call('EXISTS', pool) == 0 or redis.call('HEXISTS', P .. 'paused', r[4] or '') == 1
      if closed or t - since > 5000000 then unblock(id) else i = i + 1 end
    end
  end
end

-- join_line adds a task to the line of the first of its scopes where it has to wait, or of the first with a cap, so that
-- those which were called and have not come yet count. It returns why the task is blocked, or '' if it is called at once
-- or no cap is known: LINES has those of kinds while there is a leader.
local function join_line(id, scopes)
  if redis.call('EXISTS', LINES) == 0 then return '' end
  local line, most, runs
  for scope in each(scopes) do
    local known = redis.call('HMGET', LINES, scope, string.match(scope, '^[^:]*:'))
    local cap = tonumber(known[2] or known[1] or '')
    if cap then
      local there = redis.call('ZCOUNT', cap_key(scope), int(now()), '+inf')
      local waits = there + redis.call('ZCARD', line_key(scope)) >= cap
      if waits or not line then line, most, runs = scope, cap, there end
      if waits then break end
    end
  end
  if not line then return '' end
  block(id, int(runs) .. ' ' .. int(most) .. ' ' .. int(line_up(id, line, most)) .. ' ' .. line)
  call_up(line)
  return redis.call('HGET', task_key(id), 'blocked') or ''
end

-- place_in returns a task's place in the line of a scope with free places, or 1 if there is no line.
local function place_in(id, scope, free, cap)
  if free > 0 and redis.call('EXISTS', line_key(scope)) == 0 then return 1 end
  local place = line_up(id, scope, cap)
  if free <= 0 or place <= free then return place end
  call_up(scope)
  return (redis.call('ZRANK', line_key(scope), id) or 0) + 1 -- if it has left the line, there is a place
end

-- leave unblocks a task that does not take the place that it may have been called for. Every step that takes a task
-- out of the waiting state without running it must call it.
local function leave(id)
  local scope = unblock(id)
  if scope then call_up(scope) end
end

-- next_up makes the first task of a thread ready, or lets it wait in a line if it is due, unless something holds the
-- thread. Every step that frees a thread, or takes its first task away, must call it.
local function next_up(thread)
  if redis.call('EXISTS', claim_key(thread)) == 1 then return end
  local id = head(thread)
  local r = id and redis.call('HMGET', task_key(id), 'state', 'line', 'scopes', 'at')
  if not id or r[1] ~= 'waiting' or r[2] or redis.call('ZSCORE', READY, id) then return end
  if tonumber(r[4] or '0') > now() or join_line(id, r[3]) == '' then
    redis.call('HDEL', task_key(id), 'blocked')
    make_ready(id)
  end
end

-- let_go releases the run's places and reservations. Every step that takes a task out of the running state must call
-- it.
local function let_go(id)
  local key = task_key(id)
  redis.call('ZREM', RUNNING, id)
  local caps = redis.call('HGET', key, 'caps')
  redis.call('HDEL', key, 'caps', 'lent', 'idle')
  free_reservation(id)
  for scope in each(caps) do
    redis.call('ZREM', cap_key(scope), id)
    call_up(scope)
  end
end

-- The outbox of a source has the source's part of OUTBOX, so that a worker need not look at what others post.
local function outbox_of(source) return OUTBOX .. ':' .. source end
local function source_of(id) return string.match(id, '^[^-]*%-([^-]+)') or '' end

-- due_at puts a task into the outbox, or moves it there.
local function due_at(id, at)
  local source = source_of(id)
  redis.call('ZADD', OUTBOX, int(at), id)
  redis.call('ZADD', outbox_of(source), int(at), id)
  redis.call('SADD', OUTBOX .. 'es', source)
end

-- undue removes a task from the outbox.
local function undue(id)
  local source = source_of(id)
  redis.call('ZREM', OUTBOX, id)
  redis.call('ZREM', outbox_of(source), id)
  if redis.call('EXISTS', outbox_of(source)) == 0 then redis.call('SREM', OUTBOX .. 'es', source) end
end

-- finish ends a task: it leaves the thread, enters the outbox, and its events get the end mark. For head microseconds
-- the outbox gives it out only by ID, because its holder has a report open and goes first.
local function finish(id, thread, ending, cap, head)
  local t = int(now())
  redis.call('HSET', task_key(id), 'state', 'ended', 'ended', t, 'ending', ending, 'outbox', '0')
  tally_ending(ending, tonumber(t))
  redis.call('ZREM', waiting_key(thread), id)
  redis.call('ZREM', LIVE, id)
  redis.call('ZREM', READY, id)
  let_go(id)
  leave(id)
  redis.call('DEL', checkpoint_key(id)) -- an ended task is never resumed
  due_at(id, tonumber(t) + head)
  emit(id, cap, 'end', {'1'})
end

-- remember keeps a credential's state until ten minutes after it is no longer held or refused.
local function remember(name, held)
  local t = now()
  held = math.max(held, tonumber(redis.call('HGET', credential_key(name), 'lapse') or '0'))
  local ms = math.max(held - t, 0) / 1000 + 600000
  redis.call('PEXPIRE', credential_key(name), int(ms))
  redis.call('ZADD', CREDENTIALS, int(t + ms * 1000), name)
  redis.call('ZREMRANGEBYSCORE', CREDENTIALS, '-inf', int(t))
end

-- hasten halves the interval between starts with a credential, and forgets it below least.
local function hasten(name, least)
  local key = credential_key(name)
  local r = redis.call('HMGET', key, 'until', 'interval')
  local interval = tonumber(r[2] or '0') / 2
  redis.call('HDEL', key, 'started')
  if interval >= tonumber(least) then
    redis.call('HSET', key, 'interval', int(interval))
  elseif tonumber(r[1] or '0') > now() or redis.call('HEXISTS', key, 'refused') == 1 then
    redis.call('HDEL', key, 'interval', 'next', 'slowed')
  else
    redis.call('DEL', key)
    redis.call('ZREM', CREDENTIALS, name)
  end
end

-- expire lets a posted task expire. Its entry goes a minute later than the record, so that lead.lua finds the record
-- gone.
local function expire(id, retention)
  redis.call('HSET', task_key(id), 'outbox', '-1')
  undue(id)
  for _, key in ipairs({task_key(id), events_key(id), questions_key(id), log_key(id), pictures_key(id)}) do redis.call('PEXPIRE', key, retention) end
  redis.call('ZADD', EXPIRING, int(now() + tonumber(retention) * 1000 + 60000000), id)
end

-- set returns the words of a string as a set.
local function set(words)
  local s = {}
  for word in string.gmatch(words or '', '%S+') do s[word] = true end
  return s
end

-- part returns the tasks that a run has absorbed to waiting, blocked behind it, except those in the set stay, in their
-- old places. Every step that ends a run or makes it wait must call it, so that no task stays with a run that is over.
local function part(host, thread, stay)
  local left = {}
  for _, id in ipairs(redis.call('ZRANGE', absorbed_key(host), '0', '-1')) do
    local r = redis.pcall('HMGET', task_key(id), 'state', 'into')
    if r[1] ~= 'absorbed' or r[2] ~= host then
      if r[1] ~= 'absorbed' then redis.call('SREM', JOINED, id) end -- its record is gone
      redis.call('ZREM', absorbed_key(host), id)
    elseif stay[id] then
      left[#left + 1] = id
    else
      redis.call('HSET', task_key(id), 'state', 'waiting')
      redis.call('SREM', JOINED, id)
      redis.call('HDEL', task_key(id), 'into')
      redis.call('ZADD', waiting_key(thread), born(id), id)
      block(id, '0 0 ' .. int(redis.call('ZRANK', waiting_key(thread), id)) .. ' ')
      redis.call('ZREM', absorbed_key(host), id)
    end
  end
  return left
end

-- kept returns the set of absorbed tasks in a task's checkpoint.
local function kept(id) return set(redis.call('HGET', checkpoint_key(id), 'absorbed')) end

-- cover ends tasks with the task whose run has absorbed them. They share its final message.
local function cover(host, ids, ending, cap, retention)
  if #ids > 0 then redis.call('HSET', task_key(host), 'covers', '1') end
  for _, id in ipairs(ids) do
    local t = now()
    redis.call('HSET', task_key(id), 'state', 'ended', 'ended', int(t), 'ending', ending)
    tally_ending(ending, t)
    redis.call('ZREM', LIVE, id)
    redis.call('SREM', JOINED, id)
    emit(id, cap, 'end', {'1'})
    expire(id, retention)
  end
end
