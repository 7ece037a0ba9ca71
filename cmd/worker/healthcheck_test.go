package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/cmd/internal/assemble"
)

// A container's health check reports in its exit code whether the worker takes tasks, and prints why not.
func TestHealthcheck(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int // of the worker; 0: no worker
		code   int
		says   string
	}{
		"ready":     {http.StatusOK, 0, "ok"},
		"not ready": {http.StatusServiceUnavailable, 1, "is not ready: Redis does not answer"},
		"gone":      {0, 1, "request 127.0.0.1:"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/readyz" {
					t.Errorf("asked for %s", r.URL.Path)
				}
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte("Redis does not answer\n"))
			}))
			defer s.Close()
			if c.status == 0 {
				s.Close()
			}
			env := map[string]string{
				"ERRAND_WORKER_ADDR": strings.TrimPrefix(s.URL, "http://"), "ERRAND_STATE_DIR": t.TempDir(),
			}
			var out strings.Builder
			code := run(t.Context(), invocation{
				[]string{"healthcheck"}, func(name string) string { return env[name] }, &out, &out,
			}, assemble.Options{})
			if code != c.code || !strings.Contains(out.String(), c.says) {
				t.Errorf("exit %d, %q; want %d, %q", code, out.String(), c.code, c.says)
			}
		})
	}
}

// A worker that listens on all addresses should be queried directly, although 0.0.0.0 is not loopback for a proxy's
// settings.
func TestHealthcheckUsesNoProxy(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer s.Close()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := strings.Cut(strings.TrimPrefix(s.URL, "http://"), ":")
	cmd := exec.CommandContext(t.Context(), self, "healthcheck")
	cmd.Args[0] = underTest
	cmd.Env = []string{
		"HTTP_PROXY=http://127.0.0.1:1", "ERRAND_WORKER_ADDR=0.0.0.0:" + port, "ERRAND_STATE_DIR=" + t.TempDir(),
	}
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "ok\n" {
		t.Errorf("%v: %s", err, out)
	}
}

// Unknown arguments are refused: a health check that asked no worker would call anything healthy.
func TestWorkerCalledWrongly(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"healthcheck", "-v"}, {"healthcheck", "now"}, {"work"}, {"-loud"}} {
		var out strings.Builder
		code := run(t.Context(), invocation{args, func(string) string { return "" }, &out, &out}, assemble.Options{})
		if code != 2 || !strings.Contains(out.String(), "usage: worker") {
			t.Errorf("%q: exit %d: %s", args, code, out.String())
		}
	}
}
