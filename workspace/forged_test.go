package workspace

import (
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// forgeries put one object in the place of another one of a clone. Git does not notice it when it reads the object.
func forgeries() map[string]func(t *testing.T, dir, object, by string) {
	return map[string]func(t *testing.T, dir, object, by string){
		"loose": func(t *testing.T, dir, object, by string) {
			testGit(t, dir, "cat-file", "-e", by)
			content, err := os.ReadFile(loose(dir, by))
			if err != nil {
				t.Fatal(err)
			}
			write(t, loose(dir, object), string(content))
		},
		"packed": forgePack,
	}
}

func loose(dir, object string) string {
	return filepath.Join(dir, ".git", "objects", object[:2], object[2:])
}

// forgePack packs everything that the clone has and borrows, and changes a row of the index of the pack.
func forgePack(t *testing.T, dir, object, by string) {
	t.Helper()
	testGit(t, dir, "pack-refs", "--all")
	testGit(t, dir, "repack", "-a", "-d", "--quiet")
	names, err := filepath.Glob(dir + "/.git/objects/pack/pack-*.idx")
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	idx, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	// gitformat-pack(5): 8 bytes, 256 counts, the IDs, their checksums, their offsets, and two checksums.
	const ids = 8 + 256*4
	n := int(binary.BigEndian.Uint32(idx[ids-4:]))
	row := func(object string) int {
		id, _ := hex.DecodeString(object)
		for i := range n {
			if slices.Equal(idx[ids+20*i:][:20], id) {
				return i
			}
		}
		t.Fatalf("%s is not packed", object)
		return 0
	}
	to, from := row(object), row(by)
	for _, part := range []int{ids + 20*n, ids + 24*n} {
		copy(idx[part+4*to:][:4], idx[part+4*from:][:4])
	}
	sum := sha1.Sum(idx[:len(idx)-20])
	copy(idx[len(idx)-20:], sum[:])
	write(t, names[0], string(idx))
}

// What people and models are shown, and what is published, is what the commits and files have, whatever objects an
// agent has written.
func TestForgedObjectsAreNotRead(t *testing.T) {
	t.Parallel()
	// A loose object has no effect where the mirror has it in a pack.
	for name, content := range map[string]string{"packed": "evil\n", "loose": "own\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOrigin(t)
			o.commit("topic", map[string]string{"a.txt": "evil\n"})
			w := o.files()
			c := checkout(t, w, Want{Thread: "t", Repo: "acme/api", Ref: "topic", Base: "main"})
			write(t, c.Dir+"/benign.txt", "benign\n")
			testGit(t, c.Dir, "add", "--all")
			testGit(t, c.Dir, "commit", "--quiet", "--message", "work")
			mine := c
			mine.Head = testGit(t, c.Dir, "rev-parse", "HEAD")
			write(t, c.Dir+"/c.txt", content)
			evil := testGit(t, c.Dir, "hash-object", "-w", "c.txt")
			forgeries()[name](t, c.Dir, evil, testGit(t, c.Dir, "rev-parse", "HEAD:benign.txt"))
			if got := testGit(t, c.Dir, "cat-file", "blob", evil); got != "benign" {
				t.Fatalf("not forged: %s", got)
			}

			for _, c := range []Clone{c, mine} {
				text, _, err := w.Diff(t.Context(), c, shownLimit)
				if err != nil || !strings.Contains(text, "\n+evil\n") {
					t.Errorf("error %v, diff of %s:\n%s", err, c.Head, text)
				}
				found, err := w.Changes(t.Context(), c, Comparing{Reviewed: true, Limit: shownLimit})
				if err != nil || len(found.Files) == 0 || !strings.Contains(found.Files[0].Patch, "\n+evil\n") {
					t.Errorf("reviewed: error %v, %+v", err, found)
				}
			}
			files, _ := changed(t, w, c)
			if !strings.Contains(files["c.txt"].Patch, "\n+"+content) {
				t.Errorf("changes %+v", files)
			}
			published(t, w, c, publication())
			if files, _ := o.branch(ownBranch); files["a.txt"] != "evil\n" || files["c.txt"] != content {
				t.Errorf("published %v", files)
			}
		})
	}
}

// What the mirror has is shown whatever has become of the clone.
func TestDiffNeedsNoClone(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.commit("topic", map[string]string{"new.txt": "new\n"})
	w := o.files()
	c := checkout(t, w, Want{Thread: "t", Repo: "acme/api", Ref: "topic"})
	write(t, c.Dir+"/mine.txt", "mine\n")
	testGit(t, c.Dir, "add", "--all")
	testGit(t, c.Dir, "commit", "--quiet", "--message", "work")
	mine := c
	mine.Head = testGit(t, c.Dir, "rev-parse", "HEAD")
	// More than is copied of a clone.
	large := c.Dir + "/.git/objects/pack/pack-" + strings.Repeat("a", 40) + ".pack"
	if err := os.Truncate(touched(t, large), latest.room+1); err != nil {
		t.Fatal(err)
	}
	if text, cut, err := w.Diff(t.Context(), mine, shownLimit); err != nil || text != "" || !cut {
		t.Errorf("a commit of too large a clone: %q, cut %v, error %v", text, cut, err)
	}
	testGit(t, c.Dir, "checkout", "--quiet", "--orphan", "x")
	text, cut, err := w.Diff(t.Context(), c, shownLimit)
	if err != nil || cut || !strings.Contains(text, "\n+new\n") {
		t.Errorf("cut %v, error %v, diff:\n%s", cut, err, text)
	}
	found, err := w.Changes(t.Context(), c, Comparing{Reviewed: true, Limit: shownLimit})
	if err != nil || len(found.Files) != 1 || !strings.Contains(found.Files[0].Patch, "\n+new\n") {
		t.Errorf("reviewed: error %v, %+v", err, found)
	}
}
