-- prefix, name, us between two, burst -> {'ok', us to wait, 0 = taken}
-- The stored number is the time at which the bucket would be full again (generic cell rate algorithm): one number per
-- name.
local key, every, burst = P .. 'rate:' .. ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local t = now()
local full = tonumber(redis.call('GET', key) or '0')
-- If Redis' clock went back, the number is too far ahead and means nothing: a refused request is lost to its sender, so
-- start with a full bucket.
if full < t or full > t + every * burst then full = t end
full = full + every
local wait = full - t - every * burst
if wait > 0 then return {'ok', int(wait)} end
redis.call('SET', key, int(full), 'PX', int(math.ceil((full - t) / 1000)))
return {'ok', '0'}
