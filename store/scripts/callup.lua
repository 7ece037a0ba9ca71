-- prefix, (scope or kind, cap)... -> {'ok'}
-- Calls up tasks for places that became free without a step: their leases ended, a cap was raised or removed, or a task that was called
-- did not come. The cap of a credential is known only to workers that have it.
for _, scope in ipairs(redis.call('SMEMBERS', LINES)) do
  if redis.call('EXISTS', line_key(scope)) == 0 then
    redis.call('SREM', LINES, scope)
  else
    call_up(scope, bound(scope, 2) or not of_credential(scope) and math.huge or nil)
  end
end
return {'ok'}
