-- prefix, (kind of scope, cap)... -> {'ok'}
-- Calls up tasks for places that became free without a step: their leases ended, a cap was raised or removed, or a task
-- that was called did not come.
for _, scope in ipairs(redis.call('HKEYS', LINES)) do
  if redis.call('EXISTS', line_key(scope)) == 0 then
    redis.call('HDEL', LINES, scope)
  else
    local cap = bound(scope, 2) or 1000000 -- none any more
    redis.call('HSET', LINES, scope, int(cap))
    call_up(scope)
  end
end
return {'ok'}
