package gateway

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/agent/cloud"
)

// The smallest question goes the way of a run's, with each credential, and holds none.
func TestCheck(t *testing.T) {
	t.Parallel()
	type question struct{ path, as, model, version string }
	asked := make(chan question, 10)
	server := serve(t, func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		as := req.Header.Get("X-Api-Key") + strings.TrimSuffix(req.Header.Get("Authorization"), " "+string(body))
		var q struct {
			Model     string `json:"model"`
			Version   string `json:"anthropic_version"`
			MaxTokens int    `json:"max_tokens"`
		}
		if json.Unmarshal(body, &q) != nil || q.MaxTokens != 1 {
			t.Errorf("asked %s", body)
		}
		asked <- question{req.URL.Path, as, q.Model, q.Version}
		w.Header().Set("Content-Type", "application/json")
		switch {
		case as == "bad":
			apiError(w, http.StatusUnauthorized, "authentication_error", "invalid x-api-key")
		case strings.Contains(req.URL.Path, "claude-opus-5-5"):
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"message":"The provided model identifier is invalid."}`)
		}
	})
	base, err := cloud.Base(server.URL + "/sky")
	if err != nil {
		t.Fatal(err)
	}
	u := upstream(t, Config{
		BaseURL: server.URL + "/base",
		Credentials: []Named{
			{Name: "good", Credential: Credential{APIKey: "good"}},
			{Name: "bad", Credential: Credential{APIKey: "bad"}},
			{Name: "plan", Credential: Credential{OAuthToken: "plan"}},
			{Name: "other", Cloud: &sky{base: base}},
			{Name: "right", Cloud: &sky{base: base}, Names: map[string]string{"opus": "eu.opus"}},
			{Name: "unsigned", Cloud: &sky{base: base, fail: errors.New("the profile prod does not exist")}},
		},
	})
	host := strings.TrimPrefix(server.URL, "http://")
	want := []Probe{
		{Name: "good", Host: host, Status: 200},
		{Name: "bad", Host: host, Status: 401, Problem: "401 Unauthorized: invalid x-api-key"},
		{Name: "plan", Host: host, Closed: true},
		{
			Name: "other", Host: "Sky", Status: 400,
			Problem: "400 Bad Request: The provided model identifier is invalid.",
		},
		{Name: "right", Host: "Sky", Status: 200},
		{Name: "unsigned", Host: "Sky", Problem: "the profile prod does not exist"},
	}
	if diff := cmp.Diff(want, u.Check(t.Context(), "opus")); diff != "" {
		t.Error(diff)
	}
	for name, s := range u.States() {
		if !s.HeldAt.IsZero() {
			t.Errorf("%s: %+v", name, s)
		}
	}
	left := map[question]bool{
		{"/base/v1/messages", "good", "claude-opus-5-5", ""}: true,
		{"/base/v1/messages", "bad", "claude-opus-5-5", ""}:  true,
		{"/sky/ask/claude-opus-5-5", "signed", "", "sky-1"}:  true, {"/sky/ask/eu.opus", "signed", "", "sky-1"}: true,
	}
	close(asked)
	for q := range asked {
		if !left[q] {
			t.Errorf("asked %+v", q)
		}
		delete(left, q)
	}
	if len(left) > 0 {
		t.Errorf("not asked: %+v", left)
	}
}

// The sentence of a refusal is found in the forms of all providers.
func TestSentence(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"type":"error","error":{"message":"not for you"}}`: "403: not for you",
		`{"message":"not for you"}`:                          "403: not for you",
		`{"Message":"not for you"}`:                          "403: not for you", "not for you\n": "403: not for you",
		"": "403",
	} {
		if got := sentence(&http.Response{Status: "403", Body: io.NopCloser(strings.NewReader(text))}); got != want {
			t.Errorf("%s: %s", text, got)
		}
	}
}
