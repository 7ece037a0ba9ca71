package logs_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	"github.com/errand-fleet/errand/web/logs"
)

// A worker serves its logs to the front doors, which send the fleet token.
func ExampleServer() {
	dir, err := os.MkdirTemp("", "logs")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	const id = "1700000000000000-chat-x"
	if err := os.WriteFile(filepath.Join(dir, id+".log"), []byte("12:00:00.000 hello\n"), 0o600); err != nil {
		panic(err)
	}
	server := logs.Server(dir, "fleet-token")
	for _, token := range []string{"wrong", "fleet-token"} {
		r := httptest.NewRequest(http.MethodGet, "/logs/"+id, nil)
		r.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r)
		fmt.Println(w.Code, w.Body)
	}
	// Output:
	// 401 the fleet token is required
	//
	// 200 12:00:00.000 hello
}
