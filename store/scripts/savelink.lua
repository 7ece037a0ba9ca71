-- prefix, key of the links, user, link, its login in lower case, now as in links -> {'ok'} | {'stale'}
-- The link is not saved if another user has the login.
local all = redis.call('HGETALL', ARGV[2])
for i = 1, #all, 2 do
  local read, other = pcall(cjson.decode, all[i + 1])
  if all[i] ~= ARGV[3] and read and type(other) == 'table' and type(other.login) == 'string' and other.login:lower() == ARGV[5]
    and tostring(other['until']) > ARGV[6] then
    return {'stale'}
  end
end
redis.call('HSET', ARGV[2], ARGV[3], ARGV[4])
return {'ok'}
