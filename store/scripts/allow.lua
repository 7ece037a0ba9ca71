-- prefix, name, us between two, burst -> {'ok', us to wait, 0 = taken}
-- The stored number is the time at which the bucket would be full again (generic cell rate algorithm): one number per
-- name.
local key, every, burst = P .. 'rate:' .. ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local t = now()
-- A bucket is at most empty. It would be emptier if Redis' clock went back.
local full = math.min(math.max(tonumber(redis.call('GET', key) or '0'), t), t + every * burst) + every
local wait = full - t - every * burst
if wait > 0 then return {'ok', int(wait)} end
redis.call('SET', key, int(full), 'PX', int(math.ceil((full - t) / 1000)))
return {'ok', '0'}
