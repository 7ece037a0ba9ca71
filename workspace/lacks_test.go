package workspace

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// asPointer returns the pointer to a file with this content in Git LFS.
func asPointer(content string) string {
	return fmt.Sprintf("version https://git-lfs.github.com/spec/v1\noid sha256:%x\nsize %d\n",
		sha256.Sum256([]byte(content)), len(content))
}

// link adds a submodule to the index of the person's checkout.
func (o *origin) link(name, commit string) {
	o.t.Helper()
	testGit(o.t, o.work, "update-index", "--add", "--cacheinfo", "160000,"+commit+","+name)
}

// commands lets the git of w note its commands, and returns those since the last call.
func commands(t *testing.T, w *Workspace) func() string {
	t.Helper()
	log := filepath.Join(t.TempDir(), "log")
	script := fmt.Sprintf("#!/bin/sh\nprintf '%%s\\n' \"$*\" >>'%s'\nexec '%s' \"$@\"\n", log, w.git.path)
	w.git.path = filepath.Join(t.TempDir(), "git")
	write(t, w.git.path, script)
	return func() string {
		text, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		write(t, log, "")
		return string(text)
	}
}

// A large repository is listed only as often as needed.
func TestListingsOfTheIndex(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	files := map[string]string{".gitattributes": gitAttributes}
	for n := range 3 {
		files[fmt.Sprint(n, ".bin")] = asPointer("x")
	}
	o.commit("main", files)
	w, _ := o.serveLFS("x")
	said := commands(t, w)
	checkout(t, w, api)
	counts := func(step string, want string) {
		t.Helper()
		out := said()
		got := fmt.Sprint(strings.Count(out, " ls-files "), strings.Count(out, " grep "), strings.Count(out, " check-attr "))
		if got != want {
			t.Errorf("%s: %s listings, searches and questions for attributes, want %s:\n%s", step, got, want, out)
		}
	}
	counts("new clone", "1 1 1")
	c := checkout(t, w, api)
	counts("next clone", "2 1 1") // the first listing is of the files that are there
	write(t, filepath.Join(c.Dir, "README.md"), "by the agent")
	if _, err := w.Snapshot(t.Context(), c, 1<<20); err != nil {
		t.Fatal(err)
	}
	counts("snapshot", "2 0 0") // of the flags and of the changes
	for n := range 9 {
		write(t, filepath.Join(c.Dir, fmt.Sprint(n, ".txt")), asPointer(fmt.Sprint(n)))
	}
	if _, err := w.Publish(t.Context(), c, *publication()); err != nil {
		t.Fatal(err)
	}
	counts("publication", "2 0 2") // of the changes and of the flags; of work tree and commits
}

// What a clone has only as an empty directory or as a pointer is named, also when the clone is kept, and not what the
// agent has put there meanwhile.
func TestLacks(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.commit("main", map[string]string{
		".gitattributes":        "*.bin big\n[attr]big filter=lfs\n",
		"assets/.gitattributes": "-> ../.gitattributes", // git reads no links
		"a.bin":                 asPointer("a"), "assets/b.bin": asPointer("b"), "whole.bin": "not a pointer\n",
		"fixture.txt": asPointer("of a test, which no attribute leaves to Git LFS"), "c.bin": asPointer("c"),
		"large.bin": strings.Repeat("x", 5000),
	})
	o.link("libs/one", strings.Repeat("1", 40))
	o.link("two", strings.Repeat("2", 40))
	testGit(t, o.work, "commit", "--quiet", "--message", "link")
	o.push("HEAD:refs/heads/main")
	w := o.files()
	c := checkout(t, w, api)
	want := "[These directories of submodules are empty, because the protected branch has no address for them in .gitmodules: libs/one, two. " +
		"These files have the pointer to Git LFS instead of their content, because the repository has no server for it: " +
		"a.bin, assets/b.bin, c.bin.]"
	if got := fmt.Sprint(c.Lacks); got != want {
		t.Errorf("lacks = %s", got)
	}
	write(t, filepath.Join(c.Dir, "libs/one/file"), "by the agent")
	write(t, filepath.Join(c.Dir, "a.bin"), "by the agent")
	write(t, filepath.Join(c.Dir, "c.bin"), "")
	kept := api
	kept.Keep = true
	c = checkout(t, w, kept)
	want = strings.ReplaceAll(want, "the repository has no server for it", notThen)
	want = strings.ReplaceAll(want, whyNoAddress, notThen)
	want = strings.NewReplacer("libs/one, ", "", "a.bin, ", "", ", c.bin", "").Replace(want)
	if got := fmt.Sprint(c.Lacks); got != want {
		t.Errorf("kept: lacks = %s", got)
	}
	// An agent has damaged the index: its work is kept all the same.
	write(t, filepath.Join(c.Dir, ".git/index"), "damaged")
	if c = checkout(t, w, kept); c.Fresh || c.Lacks != nil {
		t.Errorf("damaged: %+v", c)
	}
}

// Names come from the repository, so a sentence has few, short ones, in one line.
func TestLackInASentence(t *testing.T) {
	t.Parallel()
	l := Lack{LFS: true, Why: "x", Names: []string{"a\nb", strings.Repeat("ä", 200)}}
	for range 20 {
		l.Names = append(l.Names, "n")
	}
	got := l.String()
	if strings.Contains(got, "\n") || !strings.Contains(got, ": ab, ä") || !strings.HasSuffix(got, "n, 12 more.") || len(got) > 300 {
		t.Error(got)
	}
}
