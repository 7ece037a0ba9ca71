-- prefix, (kind of scope, cap)... -> {'ok'}
-- Stores the caps in LINES, for join_line. Calls up tasks for places that became free without a step: their leases ended,
-- a cap was raised or removed, or a task that was called did not come.
if #ARGV > 1 then redis.call('HSET', LINES, unpack(ARGV, 2)) end
for _, scope in ipairs(redis.call('HKEYS', LINES)) do
  local cap = bound(scope, 2)
  local is_kind = string.sub(scope, -1) == ':'
  if is_kind and not cap or not is_kind and redis.call('EXISTS', line_key(scope)) == 0 then
    redis.call('HDEL', LINES, scope)
  elseif not is_kind then
    redis.call('HSET', LINES, scope, int(cap or 1000000)) -- none any more
    call_up(scope)
  end
end
return {'ok'}
