package workspace

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const secret = "s3cr3t/t0ken+x"

func private(t *testing.T) (*server, *Workspace, *string) {
	t.Helper()
	s := newOrigin(t).serve(rules{password: secret})
	password := secret
	return s, open(t, Config{
		Dir: t.TempDir(), URL: s.repo,
		Credential: func(context.Context, string) (string, string, error) { return "x-access-token", password, nil },
	}), &password
}

func TestCredentialOpensAndStaysHidden(t *testing.T) {
	t.Parallel()
	_, w, _ := private(t)
	calls := spy(t, w)
	trace := t.TempDir() + "/trace" // command lines of git's own children
	w.git.env = append(w.git.env, "GIT_TRACE="+trace)
	want := api
	want.Keep, want.TrustedConfig = true, true
	c := checkout(t, w, want)
	testGit(t, c.Dir, "commit", "--quiet", "--allow-empty", "--message", "work")
	c = checkout(t, w, want)
	if _, _, err := w.Diff(t.Context(), c, 1<<20); err != nil {
		t.Fatal(err)
	}

	for _, call := range calls() {
		if strings.Contains(strings.Join(append(call.Args, call.Env...), " "), secret) {
			t.Errorf("git %q has the credential", call.Args)
		}
	}
	err := filepath.WalkDir(w.cfg.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if strings.Contains(string(data), secret) {
			t.Errorf("in %s", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	lines, err := os.ReadFile(trace)
	if err != nil || !strings.Contains(string(lines), "remote-http") {
		t.Fatalf("the trace saw nothing: %v", err)
	}
	if strings.Contains(string(lines), secret) {
		t.Error("in a command line of git's children")
	}
}

func TestCredentialErrors(t *testing.T) {
	t.Parallel()
	s, w, password := private(t)
	refused := errors.New("no installation")
	for _, row := range []struct {
		name       string
		repo       string
		credential func(context.Context, string) (string, string, error)
		is         error
	}{
		{
			"wrong", "acme/api", func(context.Context, string) (string, string, error) { return "x", "wr0ng", nil },
			ErrAuth,
		},
		{"anonymous", "acme/api", nil, ErrNotFound},
		{"missing repository", "acme/nope", w.cfg.Credential, ErrNotFound},
		{
			"none to give", "acme/api", func(context.Context, string) (string, string, error) {
				return "", "",
					refused
			}, refused,
		},
	} {
		w := open(t, Config{Dir: t.TempDir(), URL: s.repo, Credential: row.credential})
		_, err := w.Checkout(t.Context(), Want{Thread: "t", Repo: row.repo})
		if !errors.Is(err, row.is) || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "wr0ng") {
			t.Errorf("%s: got %v, want %v in one line", row.name, err, row.is)
		}
	}
	// A token that expired between two runs, and a new one.
	checkout(t, w, api)
	*password = "wr0ng"
	if _, err := w.Checkout(t.Context(), api); !errors.Is(err, ErrAuth) {
		t.Errorf("expired credential: %v, want ErrAuth", err)
	}
	*password = secret
	checkout(t, w, api)
	// A line break would be a further line of git's credential protocol.
	*password = secret + "\nhost=evil.example"
	if _, err := w.Checkout(t.Context(), api); err == nil || strings.Contains(err.Error(), "evil") {
		t.Errorf("line break: %v", err)
	}
	bad := open(t, Config{Dir: t.TempDir(), URL: func(string) string { return "http://u:wr0ng@127.0.0.1:1/x" }})
	if _, err := bad.Checkout(t.Context(), api); err == nil ||
		err.Error() != "clone acme/api: the URL holds a credential" {
		t.Errorf("credential in the URL: %v", err)
	}
}

// A redirect must not send the credential to another host.
func TestCredentialIsBoundToHost(t *testing.T) {
	t.Parallel()
	s, _, _ := private(t)
	other := newOrigin(t).serve(rules{password: secret})
	// The first host is reached by another name, so that host and port differ.
	w := open(t, Config{
		Dir: t.TempDir(), URL: func(repo string) string { return redirect(t, other.URL) + "/" + repo + ".git" },
		Credential: func(context.Context, string) (string, string, error) { return "x-access-token", secret, nil },
	})
	_, err := w.Checkout(t.Context(), api)
	if !errors.Is(err, ErrNotFound) || other.hits.Load() == 0 {
		t.Errorf("got %v after %d requests, want ErrNotFound, as for an anonymous reader", err, other.hits.Load())
	}
	// Only the redirect makes the difference.
	direct := open(t, Config{Dir: t.TempDir(), URL: s.repo, Credential: w.cfg.Credential})
	checkout(t, direct, api)
}
