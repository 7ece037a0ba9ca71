package workspace

import (
	"crypto/sha256"
	"fmt"
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
