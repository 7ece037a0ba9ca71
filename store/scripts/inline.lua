-- prefix, scope -> {'ok', id} | {'notfound'}
local id = first_in(ARGV[2])
if not id then return {'notfound'} end
return {'ok', id}
