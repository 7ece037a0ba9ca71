package github

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"flag"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/forge"
	"github.com/errand-fleet/errand/internal/fake/githubfake"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const (
	repo         = "acme/api"
	tokens       = "POST /app/installations/{id}/access_tokens"
	installation = "GET /repos/{o}/{r}/installation"
)

// world is a GitHub with one repository, and a Forge for it.
type world struct {
	*testing.T
	hub   *githubfake.Server
	repo  *githubfake.Repo
	forge *Forge
	logs  *bytes.Buffer
	other func(...func(*Config)) *Forge // as another process has it
}

// appKey is made once, because that takes a while.
var appKey = sync.OnceValue(func() *rsa.PrivateKey { return must(rsa.GenerateKey(rand.Reader, 2048)) })

func pemKey() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(appKey())})
}

// both runs a test with a token and with an App.
func both(t *testing.T, test func(w *world)) {
	t.Helper()
	t.Parallel()
	t.Run("token", func(t *testing.T) { t.Parallel(); test(withToken(t)) })
	t.Run("app", func(t *testing.T) { t.Parallel(); test(withApp(t)) })
}

func withToken(t *testing.T, change ...func(*Config)) *world {
	t.Helper()
	return newWorld(t, githubfake.Config{},
		append([]func(*Config){func(c *Config) { c.Token = "ghp_test" }}, change...))
}

func withApp(t *testing.T, change ...func(*Config)) *world {
	t.Helper()
	return newApp(t, githubfake.Config{}, change...)
}

// newApp is an App that was made from the manifest, unless fake says otherwise.
func newApp(t *testing.T, fake githubfake.Config, change ...func(*Config)) *world {
	t.Helper()
	fake.AppID, fake.AppKey, fake.InstallationID = 77, &appKey().PublicKey, 5
	if fake.Permissions == nil {
		fake.Permissions = Permissions()
	}
	return newWorld(t, fake, append([]func(*Config){func(c *Config) { c.AppID, c.AppKey = 77, pemKey() }}, change...))
}

func newWorld(t *testing.T, fake githubfake.Config, change []func(*Config)) *world {
	t.Helper()
	w := &world{T: t, hub: must(githubfake.New(fake)), logs: new(bytes.Buffer)}
	t.Cleanup(w.hub.Close)
	w.repo = must(w.hub.CreateRepo("acme", "api", map[string]string{"main.go": "package main\n"}))
	w.hub.SetPermission(repo, "octocat", "write") // who opens pull requests
	w.other = func(more ...func(*Config)) *Forge {
		conns := &http.Transport{}
		t.Cleanup(conns.CloseIdleConnections)
		cfg := Config{
			APIURL: w.hub.APIURL(), URL: w.hub.URL(), HTTP: &http.Client{Transport: conns},
			Log: slog.New(slog.NewTextHandler(w.logs, nil)),
		}
		for _, f := range append(change, more...) {
			f(&cfg)
		}
		return must(New(cfg))
	}
	w.forge = w.other()
	return w
}

// open opens a pull request and returns its number.
func (w *world) open() int {
	w.Helper()
	pr := githubfake.PR{
		Repo: repo, Head: "change", Title: "Say hello", Body: "It is polite.",
		Files: map[string]string{"change.go": "package main\n"},
	}
	return must(w.hub.OpenPR(context.Background(), pr))
}

// read reads pull request 1.
func (w *world) read() error {
	w.Helper()
	_, err := w.forge.PullRequest(w.Context(), repo, 1)
	return err
}

func (w *world) pull(number int) githubfake.Pull {
	w.Helper()
	return w.hub.Pulls(repo)[number-1]
}

func wantRefused(t *testing.T, err error, part string) {
	t.Helper()
	if refused, ok := errors.AsType[*forge.RefusedError](err); !ok || !strings.Contains(refused.Sentence, part) {
		t.Errorf("got %v, want a RefusedError with %q", err, part)
	}
}

// golden compares with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := string(must(os.ReadFile(path)))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
