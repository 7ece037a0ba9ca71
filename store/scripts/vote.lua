-- prefix, id, voter, vote, most voters, ttl ms -> {'ok', the voter's first vote} | {'no'}
local key = votes_key(ARGV[2])
local stands = redis.call('HGET', key, ARGV[3])
if stands then return {'ok', stands} end
if redis.call('HLEN', key) >= tonumber(ARGV[5]) then return {'no'} end
redis.call('HSET', key, ARGV[3], ARGV[4])
redis.call('PEXPIRE', key, ARGV[6])
return {'ok', ARGV[4]}
