module github.com/errand-fleet/errand/e2e/peers

go 1.26.0

replace github.com/errand-fleet/errand => ../../

require github.com/errand-fleet/errand v0.0.0

require github.com/gorilla/websocket v1.5.3 // indirect
