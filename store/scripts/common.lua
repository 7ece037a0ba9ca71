-- What scripts have in common: link, in scripts.go, puts in front of each what it uses. ARGV[1] is always the prefix of all
-- keys; keys.go says what each key is.
-- Numbers stay strings wherever they only pass through: microseconds as a Lua number would be written as 1.7e+15.

local P = ARGV[1]
local LIVE, TASKS, OUTBOX = P .. 'live', P .. 'tasks', P .. 'outbox'
local EXPIRING, FENCE, CREDENTIALS = P .. 'expiring', P .. 'fence', P .. 'credentials'
local RUNNING, JOINED = P .. 'running', P .. 'joined' -- counted by Counts
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

local function credential_key(name) return P .. 'credential:' .. name end
local function absorbed_key(id) return P .. 'absorbed:' .. id end

local function int(n) return string.format('%.0f', n) end

-- now is Redis' clock in unix microseconds: the only clock all workers share.
local function now()
  local t = redis.call('TIME')
  return tonumber(t[1]) * 1000000 + tonumber(t[2])
end

-- day is the day of a time, as days since 1970, UTC.
local function day(t) return int(math.floor(t / 86400000000)) end

-- born is the unix microseconds an ID starts with: a task's place in its thread.
local function born(id) return string.match(id, '^%d+') end

-- runs tells whether this fence still holds the right to run the task. While it does, the claim of the thread is this one's or has
-- vanished, never another's: the running task is the head of its thread, and only the head can be claimed.
local function runs(id, fence)
  local r = redis.call('HMGET', task_key(id), 'state', 'held')
  return r[1] == 'running' and r[2] == fence
end

-- repeated tells a command that the client sends again, because its answer got lost, from a second one: by the nonce of the last step that
-- has noted its own.
local function repeated(id, nonce) return redis.call('HGET', task_key(id), 'nonce') == nonce end
local function note(id, nonce) redis.call('HSET', task_key(id), 'nonce', nonce) end

-- runner is the thread's running task, nil if none runs: claim.lua gives it the score 0.
local function runner(thread) return redis.call('ZRANGEBYSCORE', waiting_key(thread), '0', '0')[1] end

-- head is the task of a thread that starts next or runs. One whose record was removed, or is no record of a task of this thread, would hold up the
-- thread for ever: it is taken out.
local function head(thread)
  while true do
    local id = redis.call('ZRANGE', waiting_key(thread), '0', '0')[1]
    if not id or redis.pcall('HGET', task_key(id), 'thread') == thread then return id end
    redis.call('ZREM', waiting_key(thread), id)
  end
end

-- each goes through a list as it is kept in a field: one entry per line.
local function each(list) return string.gmatch(list or '', '[^\n]+') end

-- bound is the limit that holds for a scope, nil if none does. From ARGV[first] on there are pairs: a scope or, ending in a colon, a kind
-- of scopes; and the limit.
local function bound(scope, first)
  local kind = string.match(scope, '^[^:]*:')
  for i = first, #ARGV, 2 do
    if ARGV[i] == scope or ARGV[i] == kind then return tonumber(ARGV[i + 1]) end
  end
end

-- hold counts a running task in these scopes for lease milliseconds from t on.
local function hold(id, scopes, t, lease)
  for scope in each(scopes) do
    local key = cap_key(scope)
    redis.call('ZREMRANGEBYSCORE', key, '-inf', int(t))
    redis.call('ZADD', key, int(t + tonumber(lease) * 1000), id)
    redis.call('PEXPIRE', key, lease)
  end
end

-- free_reservation gives back what a run has reserved of its budgets.
local function free_reservation(id)
  local key = task_key(id)
  local r = redis.call('HMGET', key, 'reserved', 'scopes')
  if not r[1] then return end
  for scope in each('fleet\n' .. (r[2] or '')) do redis.call('HDEL', spend_key(r[1], scope), 'r:' .. id) end
  redis.call('HDEL', key, 'reserved')
end

-- let_go frees what a run held of the fleet's limits. Whatever takes a task out of the running state calls it, so that nothing else has
-- to remember.
local function let_go(id)
  local key = task_key(id)
  redis.call('ZREM', RUNNING, id)
  for scope in each(redis.call('HGET', key, 'caps')) do redis.call('ZREM', cap_key(scope), id) end
  redis.call('HDEL', key, 'caps', 'lent', 'idle')
  free_reservation(id)
end

-- block notes what a waiting task was refused for last: "<runs> <cap> <place> <scope>", or "0 0 <before it> " for its thread's sake.
local function block(id, what)
  if redis.call('HGET', task_key(id), 'blocked') ~= what then redis.call('HSET', task_key(id), 'blocked', what) end
end

-- unblock forgets that, and takes the task out of the line it stands in. Whatever takes a task out of the waiting state calls it.
local function unblock(id)
  local scope = redis.call('HGET', task_key(id), 'line')
  if scope then redis.call('ZREM', line_key(scope), id) end
  redis.call('HDEL', task_key(id), 'blocked', 'line')
end

-- first_in is the task that has waited longest for a place in a scope, nil if none does. One whose record was removed would stand there for ever.
local function first_in(scope)
  while true do
    local id = redis.call('ZRANGE', line_key(scope), '0', '0')[1]
    if not id or redis.pcall('HGET', task_key(id), 'line') == scope then return id end
    redis.call('ZREM', line_key(scope), id)
  end
end

-- line_up puts a task into the line of those that wait for a place in a scope, the oldest first, and gives its place there, from 1 on.
local function line_up(id, scope)
  local now_in = redis.call('HGET', task_key(id), 'line')
  if now_in ~= scope then
    if now_in then redis.call('ZREM', line_key(now_in), id) end
    redis.call('HSET', task_key(id), 'line', scope)
  end
  redis.call('ZADD', line_key(scope), born(id), id)
  redis.call('PEXPIRE', line_key(scope), '3600000')
  first_in(scope)
  return redis.call('ZRANK', line_key(scope), id) + 1
end

-- finish gives a task its ending: out of the thread, into the outbox, and a mark for those who follow its events. The outbox hands it
-- to just anybody only after head microseconds: its holder, who asks for it by ID, has a report open and goes first.
local function finish(id, thread, ending, cap, head)
  local t = int(now())
  redis.call('HSET', task_key(id), 'state', 'ended', 'ended', t, 'ending', ending, 'outbox', '0')
  redis.call('ZREM', waiting_key(thread), id)
  redis.call('ZREM', LIVE, id)
  let_go(id)
  unblock(id)
  redis.call('DEL', checkpoint_key(id)) -- what has ended is not gone on with
  redis.call('ZADD', OUTBOX, int(tonumber(t) + head), id)
  redis.call('XADD', events_key(id), 'MAXLEN', '=', cap, '*', 'end', '1')
  redis.call('PUBLISH', NEWS, id)
end

-- remember keeps what is known of a credential for ten minutes longer than it is held or counts as refused: what nobody confirms is forgotten.
local function remember(name, held)
  local t = now()
  held = math.max(held, tonumber(redis.call('HGET', credential_key(name), 'lapse') or '0'))
  local ms = math.max(held - t, 0) / 1000 + 600000
  redis.call('PEXPIRE', credential_key(name), int(ms))
  redis.call('ZADD', CREDENTIALS, int(t + ms * 1000), name)
  redis.call('ZREMRANGEBYSCORE', CREDENTIALS, '-inf', int(t))
end

-- expire lets a task go whose final message is out. A minute later than the record, so that submit.lua finds it gone.
local function expire(id, retention)
  redis.call('HSET', task_key(id), 'outbox', '-1')
  redis.call('ZREM', OUTBOX, id)
  for _, key in ipairs({task_key(id), events_key(id), questions_key(id), log_key(id), pictures_key(id)}) do redis.call('PEXPIRE', key, retention) end
  redis.call('ZADD', EXPIRING, int(now() + tonumber(retention) * 1000 + 60000000), id)
end

-- set makes a set of a list of words.
local function set(words)
  local s = {}
  for word in string.gmatch(words or '', '%S+') do s[word] = true end
  return s
end

-- part lets go of the tasks that a run has absorbed, but for those in stay, a set: they wait again in their old places, for the
-- deliveries that are valid (after a crash requeue.lua makes new ones first). Everything that ends a run or lets it wait calls it, so that nobody is left with a run that is over.
local function part(host, thread, stay)
  local left = {}
  for _, id in ipairs(redis.call('ZRANGE', absorbed_key(host), '0', '-1')) do
    local r = redis.pcall('HMGET', task_key(id), 'state', 'into')
    if r[1] ~= 'absorbed' or r[2] ~= host then
      if r[1] ~= 'absorbed' then redis.call('SREM', JOINED, id) end -- its record was removed
      redis.call('ZREM', absorbed_key(host), id)
    elseif stay[id] then
      left[#left + 1] = id
    else
      redis.call('HSET', task_key(id), 'state', 'waiting')
      redis.call('SREM', JOINED, id)
      redis.call('HDEL', task_key(id), 'into')
      redis.call('ZADD', waiting_key(thread), born(id), id)
      redis.call('ZREM', absorbed_key(host), id)
    end
  end
  return left
end

-- kept is the set of the absorbed tasks that are in a task's checkpoint.
local function kept(id) return set(redis.call('HGET', checkpoint_key(id), 'absorbed')) end

-- cover ends tasks with the one whose run has absorbed them. Its final message is theirs.
local function cover(ids, ending, cap, retention)
  for _, id in ipairs(ids) do
    redis.call('HSET', task_key(id), 'state', 'ended', 'ended', int(now()), 'ending', ending)
    redis.call('ZREM', LIVE, id)
    redis.call('SREM', JOINED, id)
    redis.call('XADD', events_key(id), 'MAXLEN', '=', cap, '*', 'end', '1')
    redis.call('PUBLISH', NEWS, id)
    expire(id, retention)
  end
end
