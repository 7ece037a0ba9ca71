package modelfake_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/internal/fake/modelfake"
)

func TestForm(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		method, path, body string
		without            string // a header
		status             int
		kind, message      string
	}{
		"no key": {
			"POST", "/v1/messages", whole, "X-Api-Key", 401, "authentication_error", "x-api-key header is required",
		},
		"no version": {
			"POST", "/v1/messages", whole, "Anthropic-Version", 400, "invalid_request_error",
			"anthropic-version: header is required",
		},
		"no JSON": {"POST", "/v1/messages", "{", "", 400, "invalid_request_error", "unexpected end of JSON input"},
		"no messages": {
			"POST", "/v1/messages", "{}", "", 400, "invalid_request_error",
			"messages: at least one message is required",
		},
		"wrong method": {"GET", "/v1/messages", "", "", 404, "not_found_error", "no route for GET /v1/messages"},
		"wrong path": {
			"POST", "/v1/messages/batches", whole, "", 404, "not_found_error", "no route for POST /v1/messages/batches",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := modelfake.New()
			defer s.Close()
			req := request(t.Context(), s, c.method, c.path, c.body)
			req.Header.Del(c.without)
			wantError(t, do(t, req), c.status, c.kind, c.message)
			got := s.Requests()
			if len(got) != 1 || got[0].Method != c.method || got[0].Path != c.path || string(got[0].Body) != c.body {
				t.Errorf("recorded %+v", got)
			}
		})
	}
}

func TestOtherRoutes(t *testing.T) {
	t.Parallel()
	s := modelfake.New()
	defer s.Close()
	if r := do(t, request(t.Context(), s, http.MethodHead, "/", "")); r.status != http.StatusOK {
		t.Errorf("HEAD /: status %d", r.status)
	}
	r := do(t, request(t.Context(), s, http.MethodPost, "/v1/messages/count_tokens?beta=true", whole))
	if want := "{\"input_tokens\":18}\n"; r.status != http.StatusOK || r.body != want {
		t.Errorf("count_tokens: %d %q, want %q", r.status, r.body, want)
	}
	if got := s.Requests(); len(got) != 2 || got[1].Text != "hello" {
		t.Errorf("recorded %+v", got)
	}
}

func wantError(t *testing.T, r response, status int, kind, message string) {
	t.Helper()
	var got map[string]any
	if err := json.Unmarshal([]byte(r.body), &got); err != nil {
		t.Fatalf("%v: %s", err, r.body)
	}
	want := map[string]any{
		"type": "error", "error": map[string]any{"type": kind, "message": message},
		"request_id": r.header.Get("Request-Id"),
	}
	if diff := cmp.Diff(want, got); diff != "" || r.status != status || want["request_id"] == "" {
		t.Errorf("status %d, want %d; -want +got:\n%s", r.status, status, diff)
	}
}
