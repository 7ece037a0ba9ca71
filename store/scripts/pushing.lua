-- prefix, id, fence, repository and branch, commit, how many, ttl ms -> {'ok'} | {'stale'}
if not runs(ARGV[2], ARGV[3]) then return {'stale'} end
local key = P .. 'pushed:' .. ARGV[4]
redis.call('LREM', key, '0', ARGV[5])
redis.call('RPUSH', key, ARGV[5])
redis.call('LTRIM', key, '-' .. ARGV[6], '-1')
redis.call('PEXPIRE', key, ARGV[7])
return {'ok'}
