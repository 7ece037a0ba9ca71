module github.com/errand-fleet/errand/e2e

go 1.26.0

replace github.com/errand-fleet/errand => ../

require (
	github.com/compose-spec/compose-go/v2 v2.16.2
	github.com/errand-fleet/errand v0.0.0
	github.com/google/go-cmp v0.7.0
	github.com/redis/go-redis/v9 v9.23.0
	golang.org/x/sys v0.49.0
)
