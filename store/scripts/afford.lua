-- prefix, scopes, (scope or kind, budget)... -> {'ok'} | {'overbudget', scope, spent, '0', budget}
return overbudget(ARGV[2], 3, now()) or {'ok'}
