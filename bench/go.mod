module github.com/errand-fleet/errand/bench

go 1.26.0

replace github.com/errand-fleet/errand => ../

require (
	github.com/errand-fleet/errand v0.0.0
	github.com/go-json-experiment/json v0.0.0-20260820222146-c27c302e5fc3
	github.com/google/go-cmp v0.7.0
	golang.org/x/sys v0.49.0
)

require github.com/google/uuid v1.6.0 // indirect
