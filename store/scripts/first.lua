-- prefix, id, fence, key -> {'ok'} the first time | {'no'} | {'stale'}
if not runs(ARGV[2], ARGV[3]) then return {'stale'} end
if redis.call('HSETNX', questions_key(ARGV[2]), 's:' .. ARGV[4], '1') == 1 then return {'ok'} end
return {'no'}
