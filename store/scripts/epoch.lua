-- prefix, the known epoch or '', a new one -> {'ok', the epoch, when data was lost or '0'}
local key, known = P .. 'epoch', ARGV[2]
local r = redis.call('HMGET', key, 'id', 'lost')
local lost = known ~= '' and known ~= r[1] and int(now()) or '0'
if not r[1] then
  taken_over()
  r = {ARGV[3], lost}
  redis.call('HSET', key, 'id', ARGV[3], 'lost', lost)
elseif lost ~= '0' and r[2] == '0' then -- the first caller knew no epoch
  r[2] = lost
  redis.call('HSET', key, 'lost', lost)
end
return {'ok', r[1], r[2]}
