package workspace

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

// Unpublished files should be named, and none should leave the machine.
func TestUnfit(t *testing.T) {
	t.Parallel()
	noise := make([]byte, maxFile+1)
	_, _ = rand.Read(noise)
	for name, c := range map[string]struct {
		plant func(t *testing.T, dir string)
		want  string
	}{
		"large file": {
			func(t *testing.T, dir string) { write(t, dir+"/large.bin", string(noise)) }, `"large.bin" has 10 MiB`,
		},
		"large and staged": {func(t *testing.T, dir string) {
			write(t, dir+"/large.bin", string(noise))
			testGit(t, dir, "add", "--all")
		}, `"large.bin" is in its commits`},
		"large commit": {func(t *testing.T, dir string) {
			write(t, dir+"/sub/large.bin", string(noise))
			testGit(t, dir, "add", "--all")
			testGit(t, dir, "commit", "--quiet", "--message", "large")
			testGit(t, dir, "rm", "--quiet", "-r", "sub")
		}, `"sub/large.bin" is in its commits`},
		"large commit of a name that begins with a line feed": {func(t *testing.T, dir string) {
			write(t, dir+"/\nlarge.bin", string(noise))
			testGit(t, dir, "add", "--all")
			testGit(t, dir, "commit", "--quiet", "--message", "large")
		}, `"\nlarge.bin" is in its commits`},
		"pointer with a name of two lines": {func(t *testing.T, dir string) {
			write(t, dir+"/.gitattributes", gitAttributes)
			write(t, dir+"/large\n.bin", asPointer("elsewhere"))
			testGit(t, dir, "add", "--all")
			testGit(t, dir, "commit", "--quiet", "--message", "pointer")
		}, `"large\n.bin" belongs to Git LFS`},
		"pointer that stands in another file too": {func(t *testing.T, dir string) {
			write(t, dir+"/.gitattributes", gitAttributes)
			write(t, dir+"/a.txt", asPointer("elsewhere"))
			write(t, dir+"/large.bin", asPointer("elsewhere"))
			testGit(t, dir, "add", "--all")
			testGit(t, dir, "commit", "--quiet", "--message", "pointers")
		}, `"large.bin" belongs to Git LFS`},
		"pointer that only a merge has": {func(t *testing.T, dir string) {
			write(t, dir+"/.gitattributes", gitAttributes)
			testGit(t, dir, "checkout", "--quiet", "-b", "other")
			testGit(t, dir, "commit", "--quiet", "--allow-empty", "--message", "other")
			testGit(t, dir, "checkout", "--quiet", "main")
			testGit(t, dir, "merge", "--quiet", "--no-ff", "--no-commit", "other")
			write(t, dir+"/large.bin", asPointer("elsewhere"))
			testGit(t, dir, "add", "--all")
			testGit(t, dir, "commit", "--quiet", "--message", "merge")
		}, `"large.bin" belongs to Git LFS`},
		"many files": {func(t *testing.T, dir string) {
			for n := range strings.FieldsSeq("a b c d e f g") {
				write(t, dir+"/"+n, string(noise[:maxFile]))
			}
		}, "70 MiB together"},
		"pipe": {func(t *testing.T, dir string) {
			fifo(t, dir+"/README.md")
		}, `"README.md" is neither`},
		"other repository": {func(t *testing.T, dir string) {
			testGit(t, dir, "init", "--quiet", "nested")
			write(t, dir+"/nested/x", "x\n")
		}, `"nested/"`},
		"odd name": {func(t *testing.T, dir string) { write(t, dir+"/.GIT/config", "x\n") }, `".GIT/config"`},
		"merge": {func(t *testing.T, dir string) {
			testGit(t, dir, "checkout", "--quiet", "-b", "other")
			write(t, dir+"/README.md", "other\n")
			testGit(t, dir, "commit", "--quiet", "--all", "--message", "other")
			testGit(t, dir, "checkout", "--quiet", "main")
			write(t, dir+"/README.md", "mine\n")
			testGit(t, dir, "commit", "--quiet", "--all", "--message", "mine")
			_, _ = tryGit(t, dir, "merge", "other")
		}, "the merge in progress is not finished"},
		"object by hand": {func(t *testing.T, dir string) {
			testGit(t, dir, "update-ref", "HEAD", testGit(t, dir, "commit-tree", "-p", "HEAD", "-m", "evil",
				evilTree(t, dir)))
			write(t, dir+"/.git/index", "")
			testGit(t, dir, "read-tree", "HEAD~1") // the uncommitted is harmless
		}, "hasDotgit"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOrigin(t)
			w, p := o.files(), publication()
			clone := checkout(t, w, api)
			c.plant(t, clone.Dir)
			_, err := w.Publish(t.Context(), clone, *p)
			if !errors.Is(err, ErrUnfit) || !strings.Contains(err.Error(), c.want) ||
				strings.Contains(err.Error(), "\n") {
				t.Errorf("%v, want %s", err, c.want)
			}
			if len(p.Ours) > 0 || o.sha(ownBranch) != "" {
				t.Error("it was pushed")
			}
		})
	}
}

// Commits that move many files are fit, unless one of their files may belong to Git LFS and their log is too long.
func TestManyMoves(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("/"+strings.Repeat("x", 200), 4)
	for name, c := range map[string]struct {
		content string
		moves   int
		want    error
	}{
		"files":                         {"content\n", 60, nil},
		"pointers":                      {asPointer("elsewhere"), 25, nil},
		"pointers, more than is listed": {asPointer("elsewhere"), 60, ErrUnfit},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newOrigin(t).files()
			clone := checkout(t, w, api)
			var b strings.Builder
			commit := func() { b.WriteString("commit refs/heads/main\ncommitter a <a@b> 1700000000 +0000\ndata 1\na\n") }
			fmt.Fprintf(&b, "blob\nmark :1\ndata %d\n%s", len(c.content), c.content)
			commit()
			fmt.Fprintf(&b, "from %s\n", testGit(t, clone.Dir, "rev-parse", "HEAD"))
			for i := range 2000 {
				fmt.Fprintf(&b, "M 100644 :1 d0%s/%d\n", long, i)
			}
			for i := range c.moves {
				commit()
				fmt.Fprintf(&b, "R d%d d%d\n", i, i+1)
			}
			commit() // nothing is left to check out
			fmt.Fprintf(&b, "D d%d\n", c.moves)
			cmd := exec.Command("git", "-C", clone.Dir, "fast-import", "--quiet", "--force")
			cmd.Stdin = strings.NewReader(b.String())
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if _, err := w.Publish(t.Context(), clone, *publication()); !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
}
