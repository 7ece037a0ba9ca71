package api_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/errand-fleet/errand/web/api"
	"github.com/errand-fleet/errand/web/internal/respond"
)

// The API describes itself.
func ExampleAPI_Route() {
	out, err := respond.New(nil)
	if err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	(&api.API{Out: out}).Route(mux)
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/openapi.yaml", nil))
	first, _, _ := strings.Cut(w.Body.String(), "\n")
	fmt.Println(w.Code, first)
	// Output:
	// 200 openapi: 3.1.0
}
