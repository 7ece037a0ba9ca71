package workspace

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Uses the traps of TestNothingInTheCloneExecutes, with settings that would change or hide what is read.
func TestMovingWorkExecutesNothing(t *testing.T) {
	t.Parallel()
	for name, plant := range traps() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOrigin(t)
			here, there := o.files(), o.files()
			c := checkout(t, here, api)
			write(t, c.Dir+"/README.md", "two\n")
			testGit(t, c.Dir, "commit", "--quiet", "--all", "--message", "work")
			marker := spring(t, plant, c)
			for key, value := range map[string]string{
				"diff.external": "touch " + marker, "diff.evil.textconv": "touch " + marker + "; echo",
				"diff.evil.command": "touch " + marker, "core.fsmonitor": "touch " + marker,
				"core.pager": "touch " + marker, "color.ui": "always", "diff.noprefix": "true",
				"filter.evil.clean": "touch " + marker, "diff.orderFile": "/etc/passwd",
			} {
				if _, err := tryGit(t, c.Dir, "config", key, value); err != nil {
					break // the trap has broken the clone
				}
			}
			attributes, _ := os.ReadFile(c.Dir + "/.gitattributes")
			write(t, c.Dir+"/.gitattributes",
				"* diff=evil filter=evil\n"+string(attributes)+"hidden.txt -diff binary\n")
			write(t, c.Dir+"/.git/hooks/pre-push", "#!/bin/sh\n"+marker+".sh\n")
			write(t, c.Dir+"/README.md", "three\n")
			write(t, c.Dir+"/hidden.txt", "new\n")
			if err := os.RemoveAll(marker); err != nil { // the commands above may have sprung the trap
				t.Fatal(err)
			}
			config, _ := os.ReadFile(c.Dir + "/.git/config")

			if files := workTree(t, o.restored(there, bundle(t, here, c)).Dir); files["README.md"] != "three\n" ||
				files["hidden.txt"] != "new\n" {
				t.Errorf("restored %v", files)
			}
			files, _ := changed(t, here, c)
			if !strings.Contains(files["README.md"].Patch, "\n-one\n+three\n") ||
				!strings.Contains(files["hidden.txt"].Patch, "\n+new\n") {
				t.Errorf("changes %v", files)
			}
			if after, _ := os.ReadFile(c.Dir + "/.git/config"); string(after) != string(config) {
				t.Error("the configuration changed while the agent was running")
			}
			published(t, here, c, publication())
			if files, _ := o.branch(ownBranch); files["README.md"] != "three\n" || files["hidden.txt"] != "new\n" {
				t.Errorf("published %v", files)
			}
			if exists(marker) {
				t.Error("executed on the host")
			}
		})
	}
}

// Whatever leads out of the clone is not followed: it could be another thread's work, or a repository the agent may
// not see.
func TestMovingWorkStaysInside(t *testing.T) {
	t.Parallel()
	for name, plant := range waysOut() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOrigin(t)
			o.commit("main", map[string]string{"sub/secret.txt": "harmless\n"})
			here, there := o.files(), o.files()
			c := checkout(t, here, api)
			outside := secretRepository(t)
			secrets := []string{
				testGit(t, outside, "rev-parse", "HEAD"), testGit(t, outside, "rev-parse", "HEAD:secret.txt"),
			}
			write(t, c.Dir+"/work.txt", "work\n")
			plant(t, c.Dir, outside)
			before := snapshot(t, outside)
			has := func(dir string) {
				t.Helper()
				for _, object := range secrets {
					if _, err := tryGit(t, dir, "cat-file", "-e", object); err == nil {
						t.Errorf("%s was read outside", object)
					}
				}
			}
			b, err := here.Snapshot(t.Context(), c, bundleLimit)
			live, lerr := here.Changes(t.Context(), c, Comparing{Live: true, Limit: shownLimit})
			found, cerr := here.Changes(t.Context(), c, Comparing{Limit: shownLimit})
			pushed, perr := here.Publish(t.Context(), c, *publication())
			if strings.HasPrefix(name, "work tree: ") && (err != nil || lerr != nil || cerr != nil || perr != nil) {
				t.Error(err, lerr, cerr, perr) // a link is moved, and its target is not read
			}
			if err == nil {
				has(o.restored(there, b).Dir)
			}
			for _, f := range append(found.Files, live.Files...) {
				if strings.Contains(f.Patch, "secret\n") {
					t.Errorf("%s was read outside", f.Name)
				}
			}
			if pushed.New {
				testGit(t, o.bare, "fsck", "--strict")
				has(o.bare)
			}
			if diff := cmp.Diff(before, snapshot(t, outside)); diff != "" {
				t.Errorf("outside changed:\n%s", diff)
			}
		})
	}
}

// A clone without a commit is said to be one, whatever files there are where git runs.
func TestCloneWithoutCommit(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	w := o.files()
	c := checkout(t, w, api)
	testGit(t, c.Dir, "checkout", "--quiet", "--orphan", "x")
	for _, names := range [][]string{nil, {"HEAD^{commit}", "HEAD^{tree}"}} {
		for _, name := range names {
			write(t, w.git.cwd+"/"+name, "x\n")
		}
		if b, err := w.Snapshot(t.Context(), c, 10<<10); err == nil || !strings.Contains(err.Error(), "bad revision") {
			t.Errorf("beside %q: %+v, %v", names, b, err)
		}
	}
}
