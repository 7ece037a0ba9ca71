-- prefix, id, voter, vote, reason, most voters, ttl ms, name -> {'ok', the voter's first vote} | {'no'}
-- A field is the vote, the voter's name and the latest reason, with line breaks between.
local key, vote, reason = votes_key(ARGV[2]), ARGV[4], ARGV[5]
local stands = redis.call('HGET', key, ARGV[3])
if stands then
  stands = string.match(stands, '^[^\n]*')
  if stands ~= vote or reason == '' then return {'ok', stands} end
elseif redis.call('HLEN', key) >= tonumber(ARGV[6]) then
  return {'no'}
end
redis.call('HSET', key, ARGV[3], vote .. '\n' .. ARGV[8] .. '\n' .. reason)
redis.call('PEXPIRE', key, ARGV[7])
return {'ok', ARGV[4]}
