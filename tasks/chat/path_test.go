package chat

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
)

// tree is a root that is open, with a project in it, and a directory beside it that is not.
//
//	open/project  open/file  open/out -> beside  open/in -> open/project  alias -> open  beside/
func tree(t *testing.T) string {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"open/project", "beside", "openly"} {
		if err := os.MkdirAll(filepath.Join(top, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(top, "open/file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{
		"open/out": "beside", "open/in": "open/project", "alias": "open", "open/system": "/usr/bin",
		"beside/system": "/usr/lib", "open/dangling": "nothing",
	} {
		if !filepath.IsAbs(to) {
			to = filepath.Join(top, to)
		}
		if err := os.Symlink(to, filepath.Join(top, link)); err != nil {
			t.Fatal(err)
		}
	}
	return top
}

func TestPaths(t *testing.T) {
	t.Parallel()
	top := tree(t)
	const nowhere = "does not exist, or is not in a directory that ERRAND_DIRS opens"
	for path, want := range map[string]string{ // the real path below top, or a part of the refusal
		"open":               "=open",
		"open/project":       "=open/project",
		"open//project/./":   "=open/project",
		"open/in":            "=open/project",
		"alias/project":      "=open/project",
		"open/project/../in": "has .. in it",
		"open/..":            "has .. in it",
		"open/file":          "is not a directory",
		// the refusal does not reveal what exists there
		"beside":         nowhere,
		"beside/system":  nowhere,
		"open/system":    nowhere,
		"openly":         nowhere,
		"beside/missing": nowhere,
		"missing":        nowhere,
		"open/out":       nowhere,
		"open/missing":   nowhere,
		"open/dangling":  nowhere,
		"open/file/x":    nowhere,
		"open/\x00":      nowhere,
	} {
		for _, root := range []string{"open", "alias"} { // a root may itself be a link
			s := New(Config{Dirs: []string{filepath.Join(top, root)}})
			got, err := s.Directory(top + "/" + path)
			if real, ok := strings.CutPrefix(want, "="); ok {
				if err != nil || got != filepath.Join(top, real) {
					t.Errorf("%s is %q, %v", path, got, err)
				}
			} else if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s is %q, %v; want: %s", path, got, err, want)
			}
		}
	}
}

// Tasks cannot work in errand's own directories, unless an operator has opened one of them by name.
func TestStateIsClosed(t *testing.T) {
	t.Parallel()
	top := tree(t)
	for _, test := range []struct {
		root, state string
		open        bool
	}{
		{"", "open", false},
		{"open", "open", false},
		{"alias", "open", false},
		{"open/project", "open", true},
		{"open", "", true},
		{"open", "beside", true},
	} {
		c := Config{Dirs: []string{filepath.Join(top, test.root)}}
		if test.state != "" {
			c.StateDir = filepath.Join(top, test.state)
		}
		s := New(c)
		if _, err := s.Directory(filepath.Join(top, "open/project")); (err == nil) != test.open {
			t.Errorf("%+v: %v", test, err)
		}
	}
}

func TestWithoutRootsNoDirectoryIsOpen(t *testing.T) {
	t.Parallel()
	s := New(Config{})
	if dir, err := s.Directory(t.TempDir()); err == nil {
		t.Errorf("%s is open", dir)
	}
}

func TestRelativePathsAreRefused(t *testing.T) {
	t.Parallel()
	s := New(Config{Dirs: []string{"/"}})
	for _, path := range []string{"", ".", "project", "~/project"} {
		if dir, err := s.Directory(path); err == nil || !strings.Contains(err.Error(), "is not absolute") {
			t.Errorf("%q is %q, %v", path, dir, err)
		}
	}
}

// If everything is open, the system's directories stay closed, whether they exist here or not.
func TestSystemDirectoriesAreClosed(t *testing.T) {
	t.Parallel()
	s := New(Config{Dirs: []string{"/"}, StateDir: "/var/lib/errand"})
	for _, dir := range []string{
		"/etc", "/etc/", "/etc/ssl", "/usr", "/usr/local/src", "/var", "/var/lib", "/var/lib/errand2", "/root",
		"/root/project", "/proc", "/proc/self/cwd", "/sys", "/dev/shm", "/boot", "/bin", "/sbin", "/lib", "/lib64/x",
	} {
		if got, err := s.Directory(dir); err == nil || !strings.Contains(err.Error(), "belongs to the system") {
			t.Errorf("%s is %q, %v", dir, got, err)
		}
	}
	link := filepath.Join(tree(t), "open/system")
	if got, err := s.Directory(link); err == nil || !strings.Contains(err.Error(), "belongs to the system") {
		t.Errorf("%s is %q, %v", link, got, err)
	}
	// These need not exist: only the rule is tested.
	for _, dir := range []string{
		"/variety", "/usrlocal", "/library", "/srv/etc", "/home/root", "/", "/var/lib/errand", "/var/lib/errand/x",
	} {
		if err := s.open(dir); err != nil {
			t.Errorf("%s: %v", dir, err)
		}
	}
}

func TestBriefKeepsTheWords(t *testing.T) {
	t.Parallel()
	s := New(Config{})
	for _, name := range []string{"", "strategist"} {
		want := agent.Message{Text: " /review @file\n", Agent: name}
		b, err := s.Brief(t.Context(), tasks.Task{Prompt: want.Text, Options: tasks.Options{Agent: name}}, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, b.Prompt); diff != "" || !b.Keep || b.Fresh || b.System == "" {
			t.Errorf("got %+v", b)
		}
	}
}

// The directory may have been replaced between the request and the run.
func TestBriefLooksAtTheDirectoryAgain(t *testing.T) {
	t.Parallel()
	top := tree(t)
	s := New(Config{Dirs: []string{filepath.Join(top, "open")}})
	task := tasks.Task{Prompt: "x", Dir: filepath.Join(top, "open/project")}
	if _, err := s.Brief(t.Context(), task, ""); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(task.Dir); err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{"", "beside", "open"} {
		if to != "" {
			if err := os.Symlink(filepath.Join(top, to), task.Dir); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.Brief(t.Context(), task, ""); !isInput(err) {
			t.Errorf("a directory that became %q: %v", to, err)
		}
		_ = os.Remove(task.Dir)
	}
}

func TestReportIsSilentAndNeverInTheWay(t *testing.T) {
	t.Parallel()
	s := New(Config{})
	r, err := s.Open(t.Context(), tasks.Task{})
	if err != nil {
		t.Fatal(err)
	}
	r.Update(agent.Event{Kind: agent.Text, Text: "x"})
	if err := r.Close(t.Context(), tasks.Ending{Kind: tasks.Answered}); err != nil {
		t.Errorf("the outbox would retry forever: %v", err)
	}
}

func isInput(err error) bool {
	_, ok := errors.AsType[*tasks.InputError](err)
	return ok
}
