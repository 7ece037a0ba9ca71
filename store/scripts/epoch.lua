-- prefix, the epoch that is known or '', a new one -> {'ok', the epoch, when data got lost or '0'}
local key, known = P .. 'epoch', ARGV[2]
local r = redis.call('HMGET', key, 'id', 'lost')
local lost = known ~= '' and known ~= r[1] and int(now()) or '0'
if not r[1] then
  r = {ARGV[3], lost}
  redis.call('HSET', key, 'id', ARGV[3], 'lost', lost)
elseif lost ~= '0' and r[2] == '0' then -- one who knew of no epoch was the first to look
  r[2] = lost
  redis.call('HSET', key, 'lost', lost)
end
return {'ok', r[1], r[2]}
