package workspace

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// The test binary is also the programs that tests need: writing a script and executing it at once is racy
// (golang/go#22315).
const (
	asGitSpy = "ERRAND_TEST_GIT_SPY" // write command line and environment to this file, then be git
	asWorker = "ERRAND_TEST_WORKER"  // "<step> <dir> <url>": one of workerSteps in a process that can be killed
)

// The environment of testdata/killer, which replaces the git of a worker that is to be killed. It is a script: such
// workers start git thousands of times, and the test binary takes longer to start than git.
const (
	killerStarts = "ERRAND_TEST_STARTS" // the file with the starts so far
	killerAt     = "ERRAND_TEST_KILLER" // the start at which it kills its caller
)

func TestMain(m *testing.M) {
	if args := os.Getenv(asWorker); args != "" { // which its git does not inherit
		os.Exit(beWorker(args))
	}
	if path := os.Getenv(asGitSpy); path != "" {
		beGit(path)
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
	part := strings.Split(args, " ")
	w, err := New(Config{Dir: part[1], URL: func(repo string) string { return part[2] + "/" + repo + ".git" }})
	if err == nil && os.Getenv(killerStarts) != "" {
		w.git.path, err = filepath.Abs(filepath.Join("testdata", "killer"))
		for _, name := range []string{killerStarts, killerAt} {
			w.git.env = append(w.git.env, name+"="+os.Getenv(name))
		}
	}
	if err == nil {
		err = workerSteps()[part[0]](context.Background(), w)
	}
	if err != nil {
		_, _ = os.Stderr.WriteString(err.Error())
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
