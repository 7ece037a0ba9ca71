-- prefix, name, who -> {'ok'}
local key = P .. 'leader:' .. ARGV[2]
local holder = redis.call('GET', key)
if holder and string.match(holder, '^' .. ARGV[3] .. ' ') then redis.call('DEL', key) end
return {'ok'}
