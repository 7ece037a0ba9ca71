package mcpserver_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/errand-fleet/errand/web/internal/respond"
	"github.com/errand-fleet/errand/web/mcpserver"
)

// The front door mounts the server behind its authentication. A client says which version it speaks, and learns the
// name of the server.
func ExampleServer_Route() {
	out, err := respond.New(nil)
	if err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	new(mcpserver.Server).Route(out, mux)
	r := httptest.NewRequest(http.MethodPost, "/mcp",
		strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{
		"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"laptop","version":"1"}}}`))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r)
	fmt.Println(w.Code, strings.Contains(w.Body.String(), `"name":"errand"`))
	// Output: 200 true
}
