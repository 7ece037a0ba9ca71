-- prefix, scope -> {'ok', today's spending}, in micro-dollars
return {'ok', redis.call('HGET', spend_key(day(now()), ARGV[2]), 'spent') or '0'}
