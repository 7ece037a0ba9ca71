package doctor

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A private authority is not a matter of the network.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	plain := httptest.NewServer(http.NotFoundHandler())
	plain.Close()
	t.Cleanup(secure.Close)
	for url, want := range map[string]string{secure.URL: "SSL_CERT_FILE", plain.URL: "Check the network and THE_URL."} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			_ = resp.Body.Close()
			t.Fatal("no error")
		}
		if got := Unreachable(err, "THE_URL"); !strings.Contains(got, want) {
			t.Errorf("%v: %s", err, got)
		}
	}
}
