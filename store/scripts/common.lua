-- Put in front of every script. ARGV[1] is always the prefix of all keys; keys.go says what each key is.
-- Numbers stay strings wherever they only pass through: microseconds as a Lua number would be written as 1.7e+15.

local P = ARGV[1]
local LIVE, TASKS, OUTBOX = P .. 'live', P .. 'tasks', P .. 'outbox'
local EXPIRING, FENCE = P .. 'expiring', P .. 'fence'
local NEWS = P .. 'news' -- a channel

local function task_key(id) return P .. 'task:' .. id end
local function events_key(id) return P .. 'events:' .. id end
local function questions_key(id) return P .. 'questions:' .. id end
local function log_key(id) return P .. 'log:' .. id end
local function spent_key(id) return P .. 'spent:' .. id end
local function claim_key(thread) return P .. 'claim:' .. thread end
local function waiting_key(thread) return P .. 'waiting:' .. thread end
local function session_key(thread) return P .. 'session:' .. thread end
local function checkpoint_key(id) return P .. 'checkpoint:' .. id end

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
  redis.call('PUBLISH', NEWS, id)
end
