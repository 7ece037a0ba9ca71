package vertex

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
		"POST " + models +
			"claude-opus-5-5:streamRawPredict": {Model: "claude-opus-5-5", Streamed: true},
		"POST " + models +
			"claude-sonnet-4-5@20250929:rawPredict": {Model: "claude-sonnet-4-5@20250929"},
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

func TestDirect(t *testing.T) {
	t.Parallel()
	for region, want := range map[string]string{
		"global":       "https://aiplatform.googleapis.com/v1/projects/acme",
		"eu":           "https://aiplatform.eu.rep.googleapis.com/v1/projects/acme",
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
	if err := os.WriteFile(file,
		[]byte(`{"type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r"}`),
		0o600); err != nil {
		t.Fatal(err)
	}
	v, err := New(t.Context(), Config{Project: "other", Region: "us-east5", File: file})
	if err != nil {
		t.Fatal(err)
	}
	u,
		err := url.Parse("/projects/acme/locations/eu/publishers/anthropic/models/claude-sonnet-4-5%4020250929:rawPredict")
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
		if _, err := New(t.Context(), Config{Project: "other", Region: "eu", File: file}); err == nil ||
			!strings.Contains(err.Error(), "find credentials of Google") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The token of another identity provider is exchanged for one of Google (workload identity federation).
func TestWorkloadIdentity(t *testing.T) {
	t.Parallel()
	sts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.FormValue("subject_token") != "token-of-the-pod" || req.FormValue("scope") != scope ||
			req.FormValue("audience") != "//iam.googleapis.com/pool" {
			t.Errorf("asked %v", req.Form)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"access_token": "federated", "token_type": "Bearer", "expires_in": 3600,
			"issued_token_type": "urn:ietf:params:oauth:token-type:access_token"}`)
	}))
	t.Cleanup(sts.Close)
	dir := t.TempDir()
	file := `{"type": "external_account", "audience": "//iam.googleapis.com/pool",
		"subject_token_type": "urn:ietf:params:oauth:token-type:jwt", "token_url": "` + sts.URL + `",
		"credential_source": {"file": "` + dir + `/token"}}`
	for name, text := range map[string]string{"token": "token-of-the-pod", "google.json": file} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	v, err := New(t.Context(), Config{Project: "acme", Region: "eu", File: filepath.Join(dir, "google.json")})
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://vertex.example/", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Sign(req, nil); err != nil || req.Header.Get("Authorization") != "Bearer federated" {
		t.Errorf("%v: %v", err, req.Header)
	}
}

// The errors of Google's library have the status of the service's answer, and none if there was no answer.
func TestStatus(t *testing.T) {
	t.Parallel()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	pair := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	for _, answer := range []int{http.StatusBadRequest, http.StatusTooManyRequests, http.StatusServiceUnavailable, 0} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(answer)
		}))
		t.Cleanup(server.Close)
		if answer == 0 {
			server.Close()
		}
		config := jwt.Config{Email: "worker@acme.example", PrivateKey: pair, TokenURL: server.URL}
		if _, err := config.TokenSource(t.Context()).Token(); err == nil || status(err) != answer {
			t.Errorf("status %d, want %d, of %v", status(err), answer, err)
		}
	}
}
