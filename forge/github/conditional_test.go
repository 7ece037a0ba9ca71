package github

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// tripper answers requests as a function says.
type tripper func(*http.Request) *http.Response

func (f tripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req), nil }

// replied is an answer of GitHub.
func replied(status int, header http.Header, body string) *http.Response {
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(body))}
}

// get sends a request through a transport and returns the answer.
func get(ctx context.Context, t *testing.T, rt http.RoundTripper, url string) (status int, body string) {
	t.Helper()
	res := must(rt.RoundTrip(must(http.NewRequestWithContext(ctx, http.MethodGet, url, nil))))
	defer res.Body.Close()
	return res.StatusCode, string(must(io.ReadAll(res.Body)))
}

// Only what is repeated is kept, and not for other credentials.
func TestRepeatedRequests(t *testing.T) {
	t.Parallel()
	var conditions []string
	base := tripper(func(req *http.Request) *http.Response {
		conditions = append(conditions, req.Header.Get("If-None-Match"))
		if conditions[len(conditions)-1] != "" {
			return replied(http.StatusNotModified, http.Header{}, "")
		}
		return replied(http.StatusOK, http.Header{"Etag": {"v1"}}, "it")
	})
	var kept answers
	mine, other := &conditional{base, &kept}, &conditional{base, &kept}
	const url = "https://api.hub.example/x"
	for i, c := range []struct {
		ctx  context.Context //nolint:containedctx // of one request
		by   *conditional
		want string
	}{
		{t.Context(), mine, ""},
		{t.Context(), mine, ""},
		{Repeated(t.Context()), mine, ""},
		{Repeated(t.Context()), mine, "v1"},
		{Repeated(t.Context()), other, ""},
		{t.Context(), mine, ""},
	} {
		if status, body := get(c.ctx, t, c.by, url); status != http.StatusOK || body != "it" {
			t.Errorf("%d: answered %d %q", i, status, body)
		}
		if got := conditions[len(conditions)-1]; got != c.want {
			t.Errorf("%d: the condition is %q, want %q", i, got, c.want)
		}
	}
}

// An answer that nothing has changed is passed on if errand did not ask whether anything has.
func TestUnaskedNotModified(t *testing.T) {
	t.Parallel()
	c := &conditional{tripper(func(*http.Request) *http.Response {
		return replied(http.StatusNotModified, http.Header{}, "")
	}), &answers{}}
	if status, _ := get(Repeated(t.Context()), t, c, "https://api.hub.example/x"); status != http.StatusNotModified {
		t.Errorf("answered %d", status)
	}
}

// Answers without a body take memory too.
func TestKeptAnswersAreBounded(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]string{"many": "v1", "long": strings.Repeat("x", 8<<10)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var kept answers
			header := http.Header{"Etag": {value}}
			base := tripper(func(*http.Request) *http.Response { return replied(http.StatusOK, header, "") })
			clients := []*conditional{{base, &kept}, {base, &kept}}
			for i := range maxAnswers + 10 {
				get(Repeated(t.Context()), t, clients[i%2], fmt.Sprintf("https://api.hub.example/%d", i))
				if n := len(kept.kept); n > maxAnswers || n*len(value) > maxKept {
					t.Fatalf("%d answers of %d bytes are kept", n, len(value))
				}
			}
			if len(kept.kept) == 0 {
				t.Error("none is kept")
			}
		})
	}
}
