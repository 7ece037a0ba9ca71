module github.com/errand-fleet/errand/e2e/peers

go 1.26.0

replace github.com/errand-fleet/errand => ../../

require (
	github.com/errand-fleet/errand v0.0.0
	github.com/google/go-cmp v0.7.0
)

require (
	github.com/agnivade/levenshtein v1.2.2 // indirect
	github.com/bradleyfalzon/ghinstallation/v2 v2.10.0 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/golang-jwt/jwt/v4 v4.5.2 // indirect
	github.com/google/go-github/v60 v60.0.0 // indirect
	github.com/google/go-querystring v1.1.0 // indirect
	github.com/google/jsonschema-go v0.4.3 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/gorilla/websocket v1.5.3 // indirect
	github.com/redis/go-redis/v9 v9.23.0 // indirect
	github.com/vektah/gqlparser/v2 v2.5.64 // indirect
	github.com/yuin/goldmark v1.8.7 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)
