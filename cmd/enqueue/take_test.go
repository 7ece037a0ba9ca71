package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

const takenSession = "0f5c1111-1111-4111-8111-111111111111"

// takenOver is a front door with an ended task in acme/app, whose branch is errand/x, and a clone.
func takenOver(t *testing.T) (f *frontDoor, id string) {
	t.Helper()
	f = newFrontDoor(t)
	root := t.TempDir()
	origin := filepath.Join(root, "acme", "app.git")
	f.git(root, "init", "--quiet", "--bare", "--initial-branch=main", origin)
	f.dir = filepath.Join(root, "it's a clone")
	f.git(root, "clone", "--quiet", origin, f.dir)
	f.git(f.dir, "switch", "--quiet", "--create", "main")
	f.commit("one")
	f.git(f.dir, "push", "--quiet", "origin", "main")
	f.git(f.dir, "switch", "--quiet", "--create", "errand/x")
	f.commit("two")
	f.git(f.dir, "push", "--quiet", "origin", "errand/x")
	f.git(f.dir, "switch", "--quiet", "main")
	f.git(f.dir, "branch", "--quiet", "-D", "errand/x")
	f.env["CLAUDE_CONFIG_DIR"] = filepath.Join(root, "config")

	id = f.submit("do it")
	c := f.Claim(id)
	if err := c.SaveSession(t.Context(), store.Session{
		ID: takenSession, Meta: []byte(`{"repos":["acme/app"]}`), Data: []byte(`{"uuid":"1"}` + "\n"),
	}); err != nil {
		t.Fatal(err)
	}
	f.End(c, tasks.Ending{Kind: tasks.Answered, At: time.Now(), Published: &tasks.Published{
		Work: tasks.Work{Repo: "acme/app", Branch: "errand/x", Commit: "c"},
	}, Also: []*tasks.Published{{Work: tasks.Work{Repo: "acme/web", Branch: "errand/y", Commit: "d"}}}})
	return f, id
}

func (f *frontDoor) git(dir string, args ...string) string {
	f.Helper()
	cmd := exec.CommandContext(f.Context(), "git", append([]string{
		"-C", dir, "-c", "user.name=Ann", "-c", "user.email=a@example.com",
	}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		f.Fatalf("git %q: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// commit commits a file in the clone.
func (f *frontDoor) commit(name string) {
	f.Helper()
	if err := os.WriteFile(filepath.Join(f.dir, name), nil, 0o600); err != nil {
		f.Fatal(err)
	}
	f.git(f.dir, "add", name)
	f.git(f.dir, "commit", "--quiet", "--message", name)
}

// The branch is checked out and the conversation is where the CLI looks for it, in a path with blanks. A second time
// changes neither.
func TestTake(t *testing.T) {
	t.Parallel()
	f, id := takenOver(t)
	for i, note := range []string{"", "The conversation was here before, and stays as it is.\n"} {
		code, out, errs := f.run("take", id)
		want := "cd '" + strings.ReplaceAll(f.git(f.dir, "rev-parse", "--show-toplevel"), "'", `'\''`) +
			"' && claude --resume " + takenSession + "\n"
		if code != 0 || out != want || errs != note {
			t.Fatalf("%d: exit %d: %q, not %q\n%s", i, code, out, want, errs)
		}
		if got := f.git(f.dir, "log", "--format=%D %s", "-1"); !strings.Contains(got, "HEAD -> errand/x") ||
			!strings.HasSuffix(got, "two") {
			t.Errorf("at %s", got)
		}
		found, err := filepath.Glob(f.env["CLAUDE_CONFIG_DIR"] + "/projects/*it-s-a-clone/" + takenSession + ".jsonl")
		if err != nil || len(found) != 1 {
			t.Errorf("conversation in %q, %v", found, err)
		}
	}
	if code, out, _ := f.run("take", id, "--json"); code != 0 || !strings.Contains(out, `"branch": "errand/x"`) {
		t.Errorf("exit %d: %s", code, out)
	}
}

// A clone that is not fit is refused before the task is asked for, and one whose branch has gone on stays as it is.
func TestTakeInAnotherState(t *testing.T) {
	t.Parallel()
	f, id := takenOver(t)
	clone := f.dir
	refused := func(want string) {
		t.Helper()
		if code, out, errs := f.run("take", id); code != 1 || out != "" || !strings.Contains(errs, want) {
			t.Errorf("exit %d: %q, %q", code, out, errs)
		}
	}
	f.dir = t.TempDir()
	refused("run this in a clone of acme/app")
	f.git(f.dir, "init", "--quiet")
	refused("no remote of ")
	f.dir = clone
	if err := os.WriteFile(filepath.Join(clone, "new"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	refused("has changes: commit or stash them first")
	if err := os.Remove(filepath.Join(clone, "new")); err != nil {
		t.Fatal(err)
	}
	f.git(clone, "switch", "--quiet", "--create", "errand/x")
	f.commit("own")
	refused("The task is stopped: correct that, and take it over again")
	if got := f.git(clone, "log", "--format=%s", "-1"); got != "own" {
		t.Errorf("at %s", got)
	}
	if _, err := os.Stat(f.env["CLAUDE_CONFIG_DIR"]); !os.IsNotExist(err) {
		t.Errorf("a conversation was saved: %v", err)
	}
}

func TestIsAt(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]bool{
		"https://github.com/Acme/app.git": true, "git@github.com:acme/app.git": true, "https://github.com/acme/app/": true,
		"ssh://git@github.com/acme/app": true, "https://github.com/acme/app2": false, "https://github.com/xacme/app": false,
		"acme/app": false,
	} {
		if isAt(url, "acme/app") != want {
			t.Errorf("%s: %t", url, !want)
		}
	}
}
