-- prefix, key, revision that it replaces, body, ttl ms -> {'ok'} | {'stale'}
local key = ARGV[2]
local rev = redis.pcall('HGET', key, 'rev')
if rev and not (type(rev) == 'string' and #rev < 15 and rev:match('^%d+$')) then -- not a memo
  redis.call('DEL', key)
  rev = nil
end
if int(tonumber(rev) or 0) ~= int(tonumber(ARGV[3])) then return {'stale'} end
redis.call('HSET', key, 'body', ARGV[4])
redis.call('HINCRBY', key, 'rev', 1)
redis.call('PEXPIRE', key, ARGV[5])
return {'ok'}
