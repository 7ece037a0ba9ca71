package workspace

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
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
	for out, good := range map[string]bool{
		"git version 2.31.0": true, "git version 2.39.5 (Apple Git-154)": true, "git version 3.0.0": true, "git version 2.50.1.windows.1": true,
		"git version 2.30.9": false, "git version 1.99.0": false, "hello": false,
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
	w := open(t, Config{Dir: outer + "/.errand", URL: func(repo string) string { return filepath.Join(o.root, repo+".git") }})
	checkout(t, w, api)
}

func TestRemoveAllTakesReadOnlyDirectories(t *testing.T) {
	t.Parallel()
	dir, kept := filepath.Join(t.TempDir(), "mod"), t.TempDir()
	write(t, dir+"/a/b/file", "x")
	write(t, dir+"/a/link", "-> "+kept)
	write(t, kept+"/file", "x")
	err := asNobody(t, dir, func() error {
		if err := errors.Join(os.Chmod(dir+"/a/b", 0o500), os.Chmod(dir+"/a", 0o500)); err != nil {
			return err
		}
		if err := os.RemoveAll(dir); !errors.Is(err, fs.ErrPermission) {
			return errors.New("the directory is not read-only: the test would prove nothing")
		}
		return removeAll(dir)
	})
	if err != nil || exists(dir) || !exists(kept+"/file") {
		t.Errorf("error %v, removed %v, link target kept %v", err, !exists(dir), exists(kept+"/file"))
	}
}

// asNobody calls f so that the permissions of dir and below apply. For root they do not, so f then runs on a thread
// without root's rights to files, which ends with its goroutine.
func asNobody(t *testing.T, dir string, f func() error) error {
	t.Helper()
	const nobody = 65534
	if os.Geteuid() == 0 {
		// Give it access, from the test's temporary directory to the last file.
		for _, up := range []string{filepath.Dir(filepath.Dir(dir)), filepath.Dir(dir)} {
			if err := os.Chmod(up, 0o777); err != nil {
				t.Fatal(err)
			}
		}
		err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			return errors.Join(err, os.Lchown(path, nobody, nobody))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked
		if os.Geteuid() == 0 {
			if _, err := unix.SetfsuidRetUid(nobody); err != nil {
				done <- err
				return
			}
		}
		done <- f()
	}()
	return <-done
}
