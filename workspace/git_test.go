package workspace

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestNewChecksWhatItNeeds(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a", "b")
	w := open(t, Config{Dir: dir, URL: func(string) string { return "" }})
	if fi, err := os.Stat(w.cfg.Dir); err != nil || fi.Mode().Perm() != 0o700 {
		t.Errorf("mode of the root: %v, %v", fi.Mode(), err)
	}
	for _, cfg := range []Config{{Dir: dir}, {URL: w.cfg.URL}} {
		if _, err := New(cfg); err == nil {
			t.Errorf("no error for %+v", cfg)
		}
	}
	_, err := New(Config{Dir: "/dev/null/a", URL: w.cfg.URL})
	if err == nil || !strings.Contains(err.Error(), "ERRAND_STATE_DIR") {
		t.Errorf("a place that cannot be written: %v", err)
	}
	for out, good := range map[string]bool{
		"git version 2.32.0": true, "git version 2.39.5 (Apple Git-154)": true, "git version 3.0.0": true,
		"git version 2.50.1.windows.1": true, "git version 2.31.9": false, "git version 1.99.0": false, "hello": false,
	} {
		if err := newEnough(out); (err == nil) != good {
			t.Errorf("%q: %v", out, err)
		}
	}
}

func TestErrorsHoldNoSecret(t *testing.T) {
	t.Parallel()
	g := newOrigin(t).files().git
	g.secret = "p4ss word/x"
	for _, arg := range []string{"p4ss word/x", "p4ss+word%2Fx", "p4ss%20word%2Fx"} {
		_, err := g.run(t.Context(), "ls-remote", "--", arg)
		if err == nil || strings.Contains(err.Error(), "p4ss") || !strings.Contains(err.Error(), "[redacted]") {
			t.Errorf("%q: %v", arg, err)
		}
	}
	if got := redact("word/x and more", g.secret); got != "[redacted] and more" {
		t.Errorf("split by the cut: %q", got)
	}
}

func TestErrorIsTheLineThatTells(t *testing.T) {
	t.Parallel()
	for stderr, want := range map[string]string{
		"": "git fetch: exit 1",
		"remote: hm\nfatal: no\n\nPlease make sure\nit exists.\n": "git fetch: fatal: no",
		"hint\n\x1b[31mremote: red\n":                             "git fetch: [31mremote: red",
	} {
		err := &gitError{command: "fetch", stderr: stderr, err: errors.New("exit 1")}
		if got := err.Error(); got != want {
			t.Errorf("%q: %q, want %q", stderr, got, want)
		}
	}
}

func TestOutputIsBounded(t *testing.T) {
	t.Parallel()
	last := tail{max: 4}
	for _, s := range []string{"ab", "cdefgh", "i"} {
		if n, err := last.Write([]byte(s)); n != len(s) || err != nil {
			t.Fatal(n, err)
		}
	}
	if got := string(last.kept); got != "fghi" {
		t.Errorf("tail is %q", got)
	}
	g := newOrigin(t).files().git
	g.limit = 3
	if out, err := g.run(t.Context(), "version"); out != "git" || !errors.Is(err, errLong) {
		t.Errorf("got %q, %v", out, err)
	}
}

// Other protocols start programs, so they are refused, even with a credential.
func TestOtherProtocolsAreRefused(t *testing.T) {
	t.Parallel()
	marker := filepath.Join(t.TempDir(), "marker")
	for _, url := range []string{"ssh://host/x", "git@host:x", "ext::touch " + marker, "git://127.0.0.1:1/x"} {
		w := open(t, Config{
			Dir: t.TempDir(), URL: func(string) string { return url },
			Env:        []string{"GIT_SSH_COMMAND=: > " + marker + "; false"},
			Credential: func(context.Context, string) (string, string, error) { return "x-access-token", secret, nil },
		})
		if _, err := w.Checkout(t.Context(), api); err == nil || !strings.Contains(err.Error(), "not allowed") {
			t.Errorf("%s: %v", url, err)
		}
	}
	if exists(marker) {
		t.Error("a program was started")
	}
}

// The root may be inside a checkout, whose configuration should not apply.
func TestSurroundingRepositoryIsNotSeen(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	outer := t.TempDir()
	testGit(t, outer, "init", "--quiet")
	testGit(t, outer, "config", "url.file:///nowhere/.insteadOf", o.root+"/")
	w := open(t, Config{Dir: outer + "/.errand", URL: func(repo string) string {
		return filepath.Join(o.root, repo+".git")
	}})
	checkout(t, w, api)
}
