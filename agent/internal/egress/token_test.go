package egress

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/errand-fleet/errand/agent/internal/fetch"

	"github.com/errand-fleet/errand/agent/internal/redact"
)

// trips is a transport that a test gives.
type trips func(*http.Request) (*http.Response, error)

func (f trips) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func answer(status int, body string) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}
}

// images are a registry that wants tokens of a realm, and that realm, which gives them by the function.
func images(realm string, give func(*http.Request) (*http.Response, error)) *tokens {
	reg := &Registry{Host: "images.example", Port: "443", Credential: "Basic x"}
	return &tokens{reg: reg, base: trips(func(req *http.Request) (*http.Response, error) {
		switch pass := req.Header.Get("Authorization"); {
		case strings.HasPrefix(req.URL.String(), realm) && pass == "Basic x":
			return give(req)
		case pass == "Bearer 4711":
			return answer(http.StatusOK, "the manifest"), nil
		}
		res := answer(http.StatusUnauthorized, "")
		res.Header.Set("WWW-Authenticate", `Bearer realm="`+realm+`",service="images"`)
		return res, nil
	})}
}

const goodToken = `{"token":"4711"}`

// get asks for a manifest.
func get(ctx context.Context, c *tokens) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://images.example/v2/acme/api/manifests/1", nil)
	if err != nil {
		return err
	}
	res, err := c.RoundTrip(req)
	if err == nil {
		err = res.Body.Close()
	}
	return err
}

// No answer with a token reaches the run, whatever else is in it and however long it is. Other answers do.
func TestAnswersWithTokens(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 2*maxChecked)
	for body, withheld := range map[string]bool{
		`{"token":"t","expires_in":300}`:                          true,
		`{"token":"` + long + `","expires_in":300}`:               true, // is cut where it is checked
		`{"issued_at":"now","scopes":["a"],"token":"` + long:      true,
		`{"token":"t","expires_in":"3599"}`:                       true,
		`{"token":"t","expires_in":300.0}`:                        true,
		`{"token":["t"]}`:                                         true,
		`{"expires_in":{},"access_token":"t"}`:                    true,
		`{"refresh_token":"t"}`:                                   true,
		`{"Access_Token":"t"}`:                                    true,
		`{"\u0074oken":"t"}`:                                      true,
		"\ufeff \n" + `{"token":"t"}`:                             true,
		`{"token":"t"} and more`:                                  true,
		`{"name":"pad","dependencies":{"token":"^1"},"n":1}`:      false,
		`{"name":"token","keywords":["token"],"readme":"` + long:  false,
		`{"name":"pad","readme":"` + long + `","dist":{"token":1`: false,
		`["token"]`: false,
		`"token"`:   false,
		`token=`:    false,
		``:          false,
		`{`:         false,
	} {
		res := answer(http.StatusOK, body)
		err := checkAnswer(res, hidden{})
		if (err != nil) != withheld {
			t.Errorf("%.80s: %v", body, err)
		}
		if rest, _ := io.ReadAll(res.Body); err == nil && string(rest) != body {
			t.Errorf("%.80s: passed on as %.80s", body, rest)
		}
	}
	res := answer(http.StatusOK, "compressed")
	res.Header["Content-Encoding"] = []string{"", "gzip"}
	if checkAnswer(res, hidden{}) == nil {
		t.Error("a compressed answer passes")
	}
}

// The life of a token is read in every form that servers use.
func TestLifeOfTokens(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]time.Duration{
		`300`: 300 * time.Second, `"3599"`: 3599 * time.Second, `300.0`: 300 * time.Second, `1e99`: maxLife,
		`0`: tokenLife, `-1`: tokenLife, `null`: tokenLife, `"soon"`: tokenLife, `"NaN"`: tokenLife, `{}`: tokenLife,
	} {
		if value, life := readToken([]byte(`{"token":1,"access_token":"t","expires_in":` + in + `}`)); value != "t" ||
			life != want {
			t.Errorf("%s: %q for %s", in, value, life)
		}
	}
}

// A path that a challenge has named gives the run nothing, in any form of answer.
func TestRunsDoNotReadRealms(t *testing.T) {
	t.Parallel()
	p := NewNetwork(Config{Getenv: func(string) string {
		return ""
	}, Log: slog.New(slog.DiscardHandler)}).Open(func(string, ...any) {})
	t.Cleanup(p.Close)
	var asked atomic.Int32
	c := images("https://images.example/auth/Token", func(*http.Request) (*http.Response, error) {
		asked.Add(1)
		return answer(http.StatusOK, goodToken), nil
	})
	p.registries = map[*Registry]*tokens{c.reg: c}
	h := p.registryProxy(target{"images.example", "443"}, c.reg)
	read := func(path string) (int, string) {
		w, req := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet,
			"https://images.example"+path, nil)
		h.ServeHTTP(w, req)
		return w.Code, w.Body.String()
	}
	if status, body := read("/v2/acme/api/manifests/1"); status != http.StatusOK || body != "the manifest" {
		t.Fatalf("status %d, %q", status, body)
	}
	before := asked.Load()
	for _, path := range []string{"/auth/Token?scope=x", "/auth/token", "/auth/Token/", "//auth/%54oken"} {
		if status, body := read(path); status != http.StatusForbidden ||
			!strings.Contains(body, "runs get no tokens of images.example") {
			t.Errorf("%s: status %d, %q", path, status, body)
		}
	}
	if asked.Load() != before {
		t.Error("the requests were passed on")
	}
}

// The credential goes to the named realm at its port only.
func TestPortOfRealm(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ realm, named, wrong string }{
		{"https://auth.example/token", "auth.example", ""},
		{"https://auth.example:443/token", "auth.example", ""},
		{"https://auth.example:8443/token", "auth.example:8443", ""},
		{"https://auth.example:80/token", "auth.example:80", ""},
		{"https://auth.example:80/token", "auth.example", "set realm: auth.example:80 "},
		{"https://auth.example:8443/token", "auth.example", "set realm: auth.example:8443 "},
		{"https://auth.example/token", "auth.example:80", "set realm: auth.example "},
		{"https://images.example:80/token", "", "set realm: images.example:80 "},
		{"http://auth.example/token", "auth.example", "not an https URL"},
	} {
		sent := false
		to := images(c.realm, func(*http.Request) (*http.Response, error) {
			sent = true
			return answer(http.StatusOK, goodToken), nil
		})
		to.reg.Realm = c.named
		err := get(t.Context(), to)
		if sent != (c.wrong == "") || (err == nil) != sent || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%s with realm: %s: sent %v, %v", c.realm, c.named, sent, err)
		}
	}
}

// A realm that does not answer fails all requests that wait for it together, and none waits longer than its client
// does.
func TestSilentRealm(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		silent := true
		c := images("https://images.example/token", func(req *http.Request) (*http.Response, error) {
			if silent {
				<-req.Context().Done()
				return nil, context.Cause(req.Context())
			}
			return answer(http.StatusOK, goodToken), nil
		})
		began := time.Now()
		const clients = 5
		errs := make(chan error)
		for range clients {
			go func() { errs <- get(t.Context(), c) }()
		}
		synctest.Wait()
		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := get(impatient, c); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("the impatient client got %v after %s", err, time.Since(began))
		}
		for range clients {
			if err := <-errs; err == nil || time.Since(began) != fetch.Limit {
				t.Errorf("a client got %v after %s", err, time.Since(began))
			}
		}
		silent = false
		time.Sleep(failureLife) //nolint:forbidigo // in a bubble
		if err := get(t.Context(), c); err != nil {
			t.Errorf("after the realm has come back: %v", err)
		}
	})
}

// A client that goes away while it fetches a token fails nobody else.
func TestFetchingClientGoesAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		c := images("https://images.example/token", func(req *http.Request) (*http.Response, error) {
			asked.Add(1)
			select {
			case <-time.After(time.Second):
				return answer(http.StatusOK, goodToken), nil
			case <-req.Context().Done():
				return nil, context.Cause(req.Context())
			}
		})
		first, cancel := context.WithCancel(t.Context())
		errs := make(chan error, 2)
		go func() { errs <- get(first, c) }()
		synctest.Wait()
		go func() { errs <- get(t.Context(), c) }()
		synctest.Wait()
		cancel()
		if err := errors.Join(<-errs, <-errs); !errors.Is(err, context.Canceled) ||
			strings.Contains(err.Error(), "\n") || asked.Load() != 1 {
			t.Errorf("the clients got %v from %d requests", err, asked.Load())
		}
	})
}

// No part of an answer shows the credential, in none of its forms.
func TestAnswersShowNoCredential(t *testing.T) {
	t.Parallel()
	const secret = "s3cret/ of a registry"
	long := strings.Repeat("x", maxChecked-5)
	for _, form := range redact.Forms(secret) {
		for place, text := range map[string]string{"begin": form, "bound": long + form, "end": long + long + form} {
			res := &http.Response{Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text + "."))}
			err := checkAnswer(res, newHidden(secret))
			var passed []byte
			if err == nil {
				passed, err = io.ReadAll(res.Body)
			}
			if !errors.Is(err, errShown) || strings.Trim(string(passed), "x") != "" {
				t.Errorf("%s at the %s: %v, %d bytes passed", form, place, err, len(passed))
			}
		}
		res := &http.Response{Header: http.Header{"X": {form}}, Body: http.NoBody}
		if err := checkAnswer(res, newHidden(secret)); !errors.Is(err, errShown) {
			t.Errorf("%s in a header: %v", form, err)
		}
	}
	text := long + long + "s3cret, but not all of it"
	res := &http.Response{Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text))}
	if err := checkAnswer(res, newHidden(secret)); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(res.Body); err != nil || string(got) != text {
		t.Errorf("%d bytes of %d passed, %v", len(got), len(text), err)
	}
}
