package workspace

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Nothing that a push would bring to the remote should escape Refuse, wherever and for however long a commit has it.
func TestRefuseSeesAll(t *testing.T) {
	t.Parallel()
	const secret, lines = "hunter-2-Secret", "first 1\nsecond 2"
	type work struct {
		t   *testing.T
		dir string
	}
	git := func(c work, args ...string) string { return testGit(c.t, c.dir, args...) }
	file := func(c work, name, content string) {
		if err := os.WriteFile(filepath.Join(c.dir, name), []byte(content), 0o600); err != nil {
			c.t.Fatal(err)
		}
	}
	commit := func(c work, message string) {
		git(c, "add", "--all", "--force")
		git(c, "commit", "--quiet", "--allow-empty", "--cleanup=verbatim", "--message", message)
	}
	object := func(c work, headers, message string) { // a commit that git commit would not make
		const by = " A <a@example.com> 1700000000 +0000\n"
		text := "tree " + git(c, "rev-parse", "HEAD^{tree}") + "\nparent " + git(c, "rev-parse", "HEAD") +
			"\nauthor" + by + "committer" + by + headers + "\n" + message
		file(c, ".git/object", text)
		git(c, "reset", "--quiet", "--hard", git(c, "hash-object", "-t", "commit", "-w", "--literally", ".git/object"))
	}
	merge := func(c work, plant func()) { // a merge that is more than its parents
		git(c, "checkout", "--quiet", "--detach")
		file(c, "side.txt", "side\n")
		commit(c, "side")
		git(c, "checkout", "--quiet", "main")
		file(c, "main.txt", "main\n")
		commit(c, "main")
		git(c, "merge", "--quiet", "--no-commit", "HEAD@{1}")
		plant()
		commit(c, "merge")
	}
	for name, plant := range map[string]func(c work){
		"file":          func(c work) { file(c, "work.txt", secret) },
		"lines":         func(c work) { file(c, "work.txt", "x\n"+lines+"\n") },
		"name":          func(c work) { file(c, secret, "") },
		"odd name":      func(c work) { file(c, "\té\x01"+secret, "") },
		"message":       func(c work) { commit(c, "words\n\n"+secret) },
		"message lines": func(c work) { commit(c, "words\n\n"+lines) },
		"author": func(c work) {
			git(c, "commit", "--quiet", "--allow-empty", "-m", "x", "--author", secret+" <a@example.com>")
		},
		"header":      func(c work) { object(c, "x-note "+secret+"\n", "words\n") },
		"after NUL":   func(c work) { object(c, "", "words\n\x00"+secret+"\n") },
		"encoding":    func(c work) { object(c, "encoding IBM037\n", secret+"\n") },
		"merge":       func(c work) { merge(c, func() { file(c, "both.txt", "x\n"+secret+"\n") }) },
		"merge lines": func(c work) { merge(c, func() { file(c, "main.txt", "x\n"+lines+"\n") }) },
		"merge name":  func(c work) { merge(c, func() { file(c, secret, "") }) },
		"binary": func(c work) {
			file(c, ".gitattributes", "* binary -diff\n")
			file(c, "work.bin", "\x00\x01"+secret)
		},
		"removed": func(c work) {
			file(c, "work.txt", secret)
			commit(c, "add")
			file(c, "work.txt", "")
			commit(c, "remove")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOrigin(t)
			w := o.files()
			c := checkout(t, w, api)
			plant(work{t, c.Dir})
			p := publication()
			p.Refuse = func(text string) string {
				if strings.Contains(text, secret) || strings.Contains(text, lines) {
					return "a secret"
				}
				return ""
			}
			if pushed, err := w.Publish(t.Context(), c, *p); !errors.Is(err, ErrUnfit) {
				t.Errorf("published: %+v, %v", pushed, err)
			}
		})
	}
}
