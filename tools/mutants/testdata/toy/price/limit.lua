return ARGV[1] == 'a' -- a comment == here
