-- prefix, credential, least us -> {'ok'}
redis.call('HDEL', credential_key(ARGV[2]), 'refused', 'lapse')
hasten(ARGV[2], ARGV[3])
return {'ok'}
