package workspace

import (
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	someAuthor    = "author Foo <foo@x> 1155990057 +0000\n"
	someCommitter = "committer Foo <foo@x> 1155990057 +0000\n"
)

// object stores an object as it is, whatever git would say about it.
func (o *origin) object(kind, content string) string {
	o.t.Helper()
	file := filepath.Join(o.t.TempDir(), "object")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		o.t.Fatal(err)
	}
	return testGit(o.t, o.bare, "hash-object", "-t", kind, "-w", "--literally", file)
}

// tree stores a tree of "mode name" and object pairs, in their order.
func (o *origin) tree(entries ...string) string {
	o.t.Helper()
	var b strings.Builder
	for i := 0; i < len(entries); i += 2 {
		id, err := hex.DecodeString(entries[i+1])
		if err != nil {
			o.t.Fatal(err)
		}
		b.WriteString(entries[i] + "\x00" + string(id))
	}
	return o.object("tree", b.String())
}

// old gives main a history that begins with commits, given as their trees and what follows those, and returns its
// head.
func (o *origin) old(commits ...[2]string) string {
	o.t.Helper()
	good := o.tree("100644 a", o.object("blob", "x\n"))
	commits = append(commits, [2]string{good, someAuthor + someCommitter + "\nok\n"})
	parent := ""
	for _, c := range commits {
		head := o.object("commit", "tree "+c[0]+"\n"+parent+c[1])
		parent = "parent " + head + "\n"
	}
	head := strings.TrimSpace(strings.TrimPrefix(parent, "parent "))
	testGit(o.t, o.bare, "update-ref", "refs/heads/main", head)
	return head
}

// Old objects that git would not create today are part of a usable repository.
func TestOldHistoryIsAccepted(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	fresh, early := o.files(), o.files()
	checkout(t, early, api) // its next one fetches into a mirror that exists
	blob := o.object("blob", "x\n")
	modules := o.object("blob", "[submodule \"a\"]\n\tpath = a\n\turl = --upload-pack=touch x\n")
	long := o.object("blob", strings.Repeat("a", 3000)+" text\n")
	plain, usual := o.tree("100644 a", blob), someAuthor+someCommitter+"\nm\n"
	head := o.old([][2]string{
		// missingNameBeforeEmail, missingSpaceBeforeEmail, missingEmail
		{plain, "author <> 1155990057 +0000\ncommitter <> 1155990057 +0000\n\nm\n"},
		{plain, "author Foo<foo@x> 1155990057 +0000\n" + someCommitter + "\nm\n"},
		{plain, "author Foo 1155990057 +0000\n" + someCommitter + "\nm\n"},
		// badDate, badTimezone, zeroPaddedDate
		{plain, "author <c@x> <c@x> 130 +0000\n" + someCommitter + "\nm\n"},
		{plain, "author Foo <foo@x> 1155990057 +051800\n" + someCommitter + "\nm\n"},
		{plain, "author Foo <foo@x> 01155990057 +0000\n" + someCommitter + "\nm\n"},
		// multipleAuthors, missingCommitter, nulInCommit
		{plain, someAuthor + someAuthor + someCommitter + "\nm\n"},
		{plain, someAuthor + "\nm\n"},
		{plain, someAuthor + someCommitter + "\nm\x00m\n"},
		// duplicateEntries, treeNotSorted, zeroPaddedFilemode
		{o.tree("100644 a", blob, "100644 a", blob), usual},
		{o.tree("100644 b", blob, "100644 a", blob), usual},
		{o.tree("0100644 a", blob), usual},
		// gitmodulesUrl, gitattributesLineLength
		{o.tree("100644 .gitmodules", modules), usual},
		{o.tree("100644 .gitattributes", long), usual},
	}...)
	for kind, w := range map[string]*Workspace{"new-mirror": fresh, "fetch": early} {
		c := checkout(t, w, api)
		if c.Head != head || !w.mirror(api.Repo).healthy(t.Context()) {
			t.Errorf("%s: at %s, want %s", kind, c.Head, head)
		}
		write(t, filepath.Join(c.Dir, "new"), kind)
		p := publication()
		p.Branch = "errand/" + kind
		if pushed, err := w.Publish(t.Context(), c, *p); err != nil || !pushed.New {
			t.Errorf("%s: published %+v, %v", kind, pushed, err)
		}
	}
}

// A tag may lead to such a commit, too.
func TestOldTagIsAccepted(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	commit := o.object("commit", "tree "+o.tree()+"\nauthor <> 1 +0000\n"+someCommitter+"\nm\n")
	tag := o.object("tag", "object "+commit+"\ntype commit\ntag v1\ntagger <> 1 +0000\n\nm\n")
	testGit(t, o.bare, "update-ref", "refs/tags/v1", tag)
	want := api
	want.Ref = "v1"
	if c := checkout(t, o.files(), want); c.Head != commit {
		t.Errorf("at %s, want %s", c.Head, commit)
	}
}

// What endangers a checkout is refused at once, with the object and the rule.
func TestDangerousHistoryIsRefused(t *testing.T) {
	t.Parallel()
	for rule, make := range map[string]func(o *origin, blob, tree string) string{
		"hasDotgit":    func(o *origin, _, tree string) string { return o.tree("40000 .git", tree) },
		"hasDotdot":    func(o *origin, _, tree string) string { return o.tree("40000 ..", tree) },
		"hasDot":       func(o *origin, _, tree string) string { return o.tree("40000 .", tree) },
		"fullPathname": func(o *origin, blob, _ string) string { return o.tree("100644 a/b", blob) },
		"gitmodulesName": func(o *origin, _, _ string) string {
			text := "[submodule \"../../a\"]\n\tpath = a\n\turl = https://x/y\n"
			return o.tree("100644 .gitmodules", o.object("blob", text))
		},
		"gitmodulesPath": func(o *origin, _, _ string) string {
			text := "[submodule \"a\"]\n\tpath = -a\n\turl = https://x/y\n"
			return o.tree("100644 .gitmodules", o.object("blob", text))
		},
		"gitmodulesUpdate": func(o *origin, _, _ string) string {
			text := "[submodule \"a\"]\n\tpath = a\n\turl = https://x/y\n\tupdate = !touch x\n"
			return o.tree("100644 .gitmodules", o.object("blob", text))
		},
		"gitmodulesSymlink": func(o *origin, blob, _ string) string { return o.tree("120000 .gitmodules", blob) },
		"gitmodulesBlob":    func(o *origin, _, tree string) string { return o.tree("40000 .gitmodules", tree) },
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			o := newOrigin(t)
			early := o.files()
			checkout(t, early, api)
			blob := o.object("blob", "x\n")
			bad := make(o, blob, o.tree("100644 config", blob))
			o.old([2]string{bad, someAuthor + someCommitter + "\nm\n"})
			for _, w := range []*Workspace{o.files(), early, early} { // a new mirror, and twice one that exists
				_, err := w.Checkout(t.Context(), api)
				if !errors.Is(err, ErrUnsafe) || !Lasting(err) || !strings.Contains(err.Error(), rule+": ") ||
					!strings.Contains(err.Error(), "object ") {
					t.Errorf("got %v", err)
				}
			}
		})
	}
}

// A tree that has a link and a directory of one name writes nothing through the link.
func TestDuplicateEntryWritesNothingOutside(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	outside := t.TempDir()
	blob := o.object("blob", "x\n")
	tree := o.tree("120000 a", o.object("blob", outside), "40000 a", o.tree("100644 config", blob))
	commit := o.object("commit", "tree "+tree+"\n"+someAuthor+someCommitter+"\nm\n")
	testGit(t, o.bare, "update-ref", "refs/heads/main", commit)
	_, err := o.files().Checkout(t.Context(), api)
	if names, _ := os.ReadDir(outside); len(names) > 0 {
		t.Errorf("written: %v, %v", names, err)
	}
}

// Work is held to all of git's rules: what errand pushes is new.
func TestMalformedWorkIsNotPublished(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	w := o.files()
	c := checkout(t, w, api)
	own := &origin{t: t, bare: c.Dir}
	files := testGit(t, c.Dir, "rev-parse", "HEAD^{tree}")
	for rule, commit := range map[string]string{
		"missingNameBeforeEmail": "tree " + files + "\nparent " + c.Head + "\nauthor <> 1155990057 +0000\n" +
			someCommitter + "\nm\n",
		"gitmodulesBlob": "tree " + own.tree("40000 .gitmodules", files) + "\nparent " + c.Head + "\n" + someAuthor +
			someCommitter + "\nm\n",
	} {
		testGit(t, c.Dir, "reset", "--quiet", "--soft", own.object("commit", commit))
		for range 2 { // git may have the objects after the first time
			_, err := w.Publish(t.Context(), c, *publication())
			if !errors.Is(err, ErrUnfit) || !strings.Contains(err.Error(), rule) {
				t.Errorf("%s: %v", rule, err)
			}
		}
	}
}
