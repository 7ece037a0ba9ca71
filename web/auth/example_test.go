package auth_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/errand-fleet/errand/web/auth"
)

// A handler with its own token, such as that of the metrics, checks it in constant time.
func ExampleBearerMatches() {
	r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	r.Header.Set("Authorization", "Bearer scrape-token")
	fmt.Println(auth.BearerMatches(r, "scrape-token"), auth.BearerMatches(r, "another"), auth.BearerMatches(r, ""))
	// Output: true false false
}
