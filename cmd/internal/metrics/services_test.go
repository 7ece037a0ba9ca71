package metrics

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// Both forms of GitHub's rate limit are distinguished from other refusals.
func TestServices(t *testing.T) {
	t.Parallel()
	answers := make(chan func(http.ResponseWriter), 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { (<-answers)(w) }))
	r := prometheus.NewRegistry()
	c := &http.Client{Transport: NewServices(r).Transport("github", http.DefaultTransport)}
	get := func() error {
		resp, err := c.Get(s.URL)
		if err == nil {
			_ = resp.Body.Close()
		}
		return err
	}
	for _, a := range []struct {
		status int
		header string
		value  string
	}{
		{200, "", ""},
		{429, "", ""},
		{403, "Retry-After", "3"},
		{403, "X-RateLimit-Remaining", "0"},
		{403, "X-RateLimit-Remaining", "9"},
		{502, "", ""},
	} {
		answers <- func(w http.ResponseWriter) { w.Header().Set(a.header, a.value); w.WriteHeader(a.status) }
		if err := get(); err != nil {
			t.Fatal(err)
		}
	}
	s.Close()
	if get() == nil {
		t.Error("a closed server answered")
	}
	expect(t, r, `
errand_service_request_duration_seconds_count{service="github"} 7
errand_service_requests_total{result="2xx",service="github"} 1
errand_service_requests_total{result="4xx",service="github"} 1
errand_service_requests_total{result="5xx",service="github"} 1
errand_service_requests_total{result="failed",service="github"} 1
errand_service_requests_total{result="limited",service="github"} 3`)
}
