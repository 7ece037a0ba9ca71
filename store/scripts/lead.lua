-- prefix, name, who, ttl ms -> {'ok', term} | {'no'}
local key, who = P .. 'leader:' .. ARGV[2], ARGV[3]
local holder = redis.call('GET', key)
local term = holder and string.match(holder, '^' .. who .. ' (%d+)$')
if holder and not term then return {'no'} end
term = term or int(now())
redis.call('SET', key, who .. ' ' .. term, 'PX', ARGV[4])
return {'ok', term}
