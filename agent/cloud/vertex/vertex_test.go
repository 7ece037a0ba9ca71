package vertex

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/jwt"

	"github.com/errand-fleet/errand/agent/cloud"
)

// TestMain gives Google's library a file, so that it does not look for a machine of Google.
func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "vertex")
	if err != nil {
		panic(err)
	}
	file := filepath.Join(dir, "key.json")
	text := `{"type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r"}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		panic(err)
	}
	_ = os.Setenv("GOOGLE_APPLICATION_CREDENTIALS", file)
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

func TestQuestion(t *testing.T) {
	t.Parallel()
	v, err := New(t.Context(), Config{Project: "acme", Region: "eu"})
	if err != nil {
		t.Fatal(err)
	}
	const models = "/projects/acme/locations/eu/publishers/anthropic/models/"
	for request, want := range map[string]*cloud.Question{
		"POST " + models + "claude-opus-5-5:streamRawPredict":                                          {Model: "claude-opus-5-5", Streamed: true},
		"POST " + models + "claude-sonnet-4-5@20250929:rawPredict":                                     {Model: "claude-sonnet-4-5@20250929"},
		"POST " + models + "count-tokens:rawPredict":                                                   {Free: true},
		"POST " + models + "count-tokens:streamRawPredict":                                             nil,
		"POST " + models + "claude-haiku-%2F..%2F..%2Fgoogle%2Fmodels%2Fgemini:rawPredict":             nil,
		"POST " + models + "claude-haiku-x%3AgenerateContent%3F:rawPredict":                            nil,
		"GET " + models + "claude-opus-5-5:rawPredict":                                                 nil,
		"POST " + models + "claude-opus-5-5:predict":                                                   nil,
		"POST /projects/rich/locations/eu/publishers/anthropic/models/claude-opus-5-5:rawPredict":      nil,
		"POST /projects/acme/locations/us/publishers/anthropic/models/claude-opus-5-5:rawPredict":      nil,
		"POST /projects/acme/locations/eu/publishers/google/models/gemini-2.5-pro:rawPredict":          nil,
		"POST /projects/acme/locations/eu/publishers/anthropic/models/../../../endpoints/1:rawPredict": nil,
	} {
		method, path, _ := strings.Cut(request, " ")
		switch q, ok := v.Question(method, path); {
		case ok != (want != nil), ok && q != *want:
			t.Errorf("%s: %+v %v", request, q, ok)
		}
	}
}

// source gives what it has.
type source struct {
	token *oauth2.Token
	err   error
}

func (s *source) Token() (*oauth2.Token, error) { return s.token, s.err }

// A token that cannot be renewed is used until it expires.
func TestFailedRenewal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &source{token: &oauth2.Token{AccessToken: "first", Expiry: time.Now().Add(time.Minute)}}
		get := lasting(s)
		if _, _, err := get(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.token, s.err = nil, errors.New("unreachable")
		time.Sleep(58 * time.Second) //nolint:forbidigo // in a bubble
		if token, life, err := get(t.Context()); err != nil || token.AccessToken != "first" || life != 2*time.Second {
			t.Errorf("%v for %v, %v", token, life, err)
		}
		time.Sleep(3 * time.Second) //nolint:forbidigo // in a bubble
		if token, _, err := get(t.Context()); err == nil {
			t.Errorf("%v is used after its end", token)
		}
	})
}

func TestDirect(t *testing.T) {
	t.Parallel()
	for region, want := range map[string]string{
		"global": "https://aiplatform.googleapis.com/v1/projects/acme", "eu": "https://aiplatform.eu.rep.googleapis.com/v1/projects/acme",
		"europe-west1": "https://europe-west1-aiplatform.googleapis.com/v1/projects/acme",
	} {
		v, err := New(t.Context(), Config{Project: "acme", Region: region})
		if err != nil {
			t.Fatal(err)
		}
		u := &url.URL{Scheme: "http", Host: "127.0.0.1:1", Path: "/projects/acme"}
		if v.Direct(u); u.String() != want || !strings.HasPrefix(want, "https://"+v.Host()+"/") {
			t.Errorf("%s: %s by %s", region, u, v.Host())
		}
	}
	if _, err := New(t.Context(), Config{Region: "eu"}); err == nil {
		t.Error("there is no project")
	}
}

// A question that the CLI asks for one project and region goes to those of another credential, signed with its file.
func TestDirectToAnotherProject(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "other.json")
	if err := os.WriteFile(file, []byte(`{"type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	v, err := New(t.Context(), Config{Project: "other", Region: "us-east5", File: file})
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse("/projects/acme/locations/eu/publishers/anthropic/models/claude-sonnet-4-5%4020250929:rawPredict")
	if err != nil {
		t.Fatal(err)
	}
	v.Direct(u)
	if got := u.String(); got != "https://us-east5-aiplatform.googleapis.com/v1/projects/other/locations/us-east5/publishers/anthropic/models/claude-sonnet-4-5%4020250929:rawPredict" {
		t.Error(got)
	}
	for name, text := range map[string]string{"absent": "", "not JSON": "x", "of no type": "{}"} {
		file := filepath.Join(t.TempDir(), "file")
		if text != "" {
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := New(t.Context(), Config{Project: "other", Region: "eu", File: file}); err == nil || !strings.Contains(err.Error(), "find credentials of Google") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A failure of the service that gives tokens is not one of the credential.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	pair := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	const has, refuses, fails, gone = http.StatusOK, http.StatusBadRequest, http.StatusServiceUnavailable, 0
	for name, c := range map[string]struct {
		answers     []int
		unreachable bool
	}{
		"closed after a token": {[]int{has, gone}, true}, "fails after a token": {[]int{has, fails}, true},
		"refuses after a token": {[]int{has, refuses}, false}, "fails at first": {[]int{fails}, true},
		"refuses at first": {[]int{refuses}, false}, "limits at first": {[]int{http.StatusTooManyRequests}, true},
	} {
		var status atomic.Int32
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(int(status.Load()))
			_, _ = io.WriteString(w, `{"access_token": "t", "id_token": "e30.eyJleHAiOjF9."}`) // it expired in 1970
		}))
		t.Cleanup(server.Close)
		config := jwt.Config{Email: "worker@acme.example", PrivateKey: pair, TokenURL: server.URL}
		get := lasting(config.TokenSource(t.Context()))
		for i, answer := range c.answers {
			if status.Store(int32(answer)); answer == gone {
				server.Close()
			}
			_, _, err := get(t.Context())
			last := i == len(c.answers)-1
			if (err != nil) != last || errors.Is(err, cloud.ErrUnreachable) != (last && c.unreachable) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
