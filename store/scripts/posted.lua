-- prefix, id, delivery, attempt, retention ms -> {'ok'} | {'stale'}
local id, retention = ARGV[2], ARGV[5]
local key = task_key(id)
local r = redis.call('HMGET', key, 'state', 'delivery', 'outbox')
if r[1] ~= 'ended' or r[2] ~= ARGV[3] then return {'stale'} end
if r[3] == '-1' then return {'ok'} end
if r[3] ~= ARGV[4] then return {'stale'} end
redis.call('HSET', key, 'outbox', '-1')
redis.call('ZREM', OUTBOX, id)
redis.call('PEXPIRE', key, retention)
redis.call('PEXPIRE', events_key(id), retention)
redis.call('PEXPIRE', questions_key(id), retention)
redis.call('PEXPIRE', log_key(id), retention)
-- A minute later than the record, so that submit.lua finds it gone.
redis.call('ZADD', EXPIRING, int(now() + tonumber(retention) * 1000 + 60000000), id)
return {'ok'}
