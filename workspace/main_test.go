package workspace

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// The test binary is also the programs that tests need: writing a script and executing it at once is racy (golang/go#22315).
const (
	asGitSpy = "ERRAND_TEST_GIT_SPY" // write command line and environment to this file, then be git
	asWorker = "ERRAND_TEST_WORKER"  // "<dir> <url>": one Checkout of acme/api in a process that can be killed
)

func TestMain(m *testing.M) {
	if path := os.Getenv(asGitSpy); path != "" {
		beGit(path)
	}
	if args := os.Getenv(asWorker); args != "" {
		os.Exit(beWorker(args))
	}
	os.Exit(m.Run())
}

// gitCall is one run of git by this package.
type gitCall struct {
	Args, Env []string
}

func beGit(log string) {
	line, err := json.Marshal(gitCall{os.Args[1:], os.Environ()})
	if err != nil {
		panic(err)
	}
	f, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	if _, err := f.Write(append(line, '\n')); err != nil {
		panic(err)
	}
	path, err := exec.LookPath("git")
	if err != nil {
		panic(err)
	}
	// The real git must not start another spy.
	_ = os.Unsetenv(asGitSpy)
	panic(syscall.Exec(path, append([]string{"git"}, os.Args[1:]...), os.Environ()))
}

func beWorker(args string) int {
	dir, url, _ := strings.Cut(args, " ")
	w, err := New(Config{Dir: dir, URL: func(repo string) string { return url + "/" + repo + ".git" }})
	if err == nil {
		_, err = w.Checkout(context.Background(), Want{Thread: "worker", Repo: "acme/api"})
	}
	if err != nil {
		return 1
	}
	return 0
}

// spy makes w run git through beGit and returns what it saw so far.
func spy(t *testing.T, w *Workspace) func() []gitCall {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	log := t.TempDir() + "/calls"
	w.git.path = exe
	w.git.env = append(w.git.env, asGitSpy+"="+log)
	return func() []gitCall {
		t.Helper()
		data, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		var calls []gitCall
		for line := range strings.Lines(string(data)) {
			var c gitCall
			if err := json.Unmarshal([]byte(line), &c); err != nil {
				t.Fatal(err)
			}
			calls = append(calls, c)
		}
		return calls
	}
}
