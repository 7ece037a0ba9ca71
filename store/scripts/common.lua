-- Put in front of every script. ARGV[1] is always the prefix of all keys; keys.go says what each key is.
-- Numbers stay strings wherever they only pass through: microseconds as a Lua number would be written as 1.7e+15.

local P = ARGV[1]
local LIVE, TASKS, OUTBOX = P .. 'live', P .. 'tasks', P .. 'outbox'
local EXPIRING, FENCE = P .. 'expiring', P .. 'fence'

local function task_key(id) return P .. 'task:' .. id end
local function events_key(id) return P .. 'events:' .. id end
local function questions_key(id) return P .. 'questions:' .. id end
local function spent_key(id) return P .. 'spent:' .. id end
local function claim_key(thread) return P .. 'claim:' .. thread end
local function waiting_key(thread) return P .. 'waiting:' .. thread end
local function session_key(thread) return P .. 'session:' .. thread end
local function checkpoint_key(id) return P .. 'checkpoint:' .. id end
local function absorbed_key(id) return P .. 'absorbed:' .. id end

local function int(n) return string.format('%.0f', n) end

-- now is Redis' clock in unix microseconds: the only clock all workers share.
local function now()
  local t = redis.call('TIME')
  return tonumber(t[1]) * 1000000 + tonumber(t[2])
end

-- born is the unix microseconds an ID starts with: a task's place in its thread.
local function born(id) return string.match(id, '^%d+') end

-- runs tells whether this fence still holds the right to run the task. While it does, the claim of the thread is this one's or has
-- vanished, never another's: the running task is the head of its thread, and only the head can be claimed.
local function runs(id, fence)
  local r = redis.call('HMGET', task_key(id), 'state', 'held')
  return r[1] == 'running' and r[2] == fence
end

-- finish gives a task its ending: out of the thread, into the outbox, and a mark for those who follow its events. The outbox hands it
-- to just anybody only after head microseconds: its holder, who asks for it by ID, has a report open and goes first.
local function finish(id, thread, ending, cap, head)
  local t = int(now())
  redis.call('HSET', task_key(id), 'state', 'ended', 'ended', t, 'ending', ending, 'outbox', '0')
  redis.call('ZREM', waiting_key(thread), id)
  redis.call('ZREM', LIVE, id)
  redis.call('DEL', checkpoint_key(id)) -- what has ended is not gone on with
  redis.call('ZADD', OUTBOX, int(tonumber(t) + head), id)
  redis.call('XADD', events_key(id), 'MAXLEN', '=', cap, '*', 'end', '1')
end

-- expire lets a task go whose final message is out. A minute later than the record, so that submit.lua finds it gone.
local function expire(id, retention)
  redis.call('HSET', task_key(id), 'outbox', '-1')
  redis.call('ZREM', OUTBOX, id)
  for _, key in ipairs({task_key(id), events_key(id), questions_key(id)}) do redis.call('PEXPIRE', key, retention) end
  redis.call('ZADD', EXPIRING, int(now() + tonumber(retention) * 1000 + 60000000), id)
end

-- set makes a set of a list of words.
local function set(words)
  local s = {}
  for word in string.gmatch(words or '', '%S+') do s[word] = true end
  return s
end

-- part lets go of the tasks that a run has absorbed, but for those in stay, a set: they wait again in their old places, for the
-- deliveries that they have. Everything that ends a run or lets it wait calls it, so that nobody is left with a run that is over.
local function part(host, thread, stay)
  local left = {}
  for _, id in ipairs(redis.call('ZRANGE', absorbed_key(host), '0', '-1')) do
    local r = redis.call('HMGET', task_key(id), 'state', 'into')
    if r[1] ~= 'absorbed' or r[2] ~= host then
      redis.call('ZREM', absorbed_key(host), id)
    elseif stay[id] then
      left[#left + 1] = id
    else
      redis.call('HSET', task_key(id), 'state', 'waiting')
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
    redis.call('XADD', events_key(id), 'MAXLEN', '=', cap, '*', 'end', '1')
    expire(id, retention)
  end
end
