-- prefix, id, voter, vote, reason, most voters, ttl ms -> {'ok', the voter's first vote} | {'no'}
-- A field is the vote, or the vote and the latest reason for it, with a line break between.
local key, vote, reason = votes_key(ARGV[2]), ARGV[4], ARGV[5]
local stands = redis.call('HGET', key, ARGV[3])
if stands then
  stands = string.match(stands, '^[^\n]*')
  if stands ~= vote or reason == '' then return {'ok', stands} end
elseif redis.call('HLEN', key) >= tonumber(ARGV[6]) then
  return {'no'}
end
if reason ~= '' then vote = vote .. '\n' .. reason end
redis.call('HSET', key, ARGV[3], vote)
redis.call('PEXPIRE', key, ARGV[7])
return {'ok', ARGV[4]}
