package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"syscall"
)

// importDir holds what trusted instructions import (@path), as it is in the base commit. In the work tree the same path leads to what
// nobody has approved. It lies in .claude, which is removed before trusted configuration is put, and is never published.
const importDir = ".claude/errand-imports"

// importForm finds all that the CLI (2.1.329) may take for an import, and more: the CLI looks into the text of the parsed Markdown, behind
// white space or a mark such as **, and not into code.
var importForm = regexp.MustCompile(`@((?:[^\s\\]|\\ ){1,1000})`)

// isInstructions reports whether the CLI looks for imports in a file of the configuration. In agents, commands and skills it does not.
func isInstructions(name string) bool {
	switch strings.ToLower(path.Base(name)) {
	case "claude.md", "claude.local.md", "agents.md":
		return true
	}
	return strings.Contains(strings.ToLower("/"+name), "/.claude/rules/")
}

// imports makes the imports of trusted instructions lead to the base commit.
type imports struct {
	mirror mirror
	commit string
	base   map[string]treeFile // of the commit, by name
	root   *os.Root            // of the work tree
	files  []treeFile          // that are to be put
	seen   map[string]bool
}

// redirect rewrites the imports of a file, and notes the files that they name. One that the base lacks and the work tree has leads nowhere; what
// is in neither is text, and stays as it is.
func (i *imports) redirect(name, content string) string {
	up := strings.Repeat("../", strings.Count(name, "/"))
	return importForm.ReplaceAllStringFunc(content, func(written string) string {
		token := strings.ReplaceAll(written[1:], `\ `, " ")
		for _, end := range ends(token) { // the longest first
			target := path.Join(path.Dir(name), token[:end])
			if target == "." || target == ".." || strings.HasPrefix(target, "../") {
				continue
			}
			f, inBase := i.base[target]
			if inBase && !i.seen[target] {
				i.seen[target] = true
				i.files = append(i.files, f)
			}
			if _, err := i.root.Lstat(target); inBase || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENAMETOOLONG) {
				return "@./" + strings.ReplaceAll(up+importDir+"/"+target+token[end:], " ", `\ `)
			}
		}
		return written
	})
}

// ends are where the path of an import may end: behind all of it, or before a mark, since Markdown may take that away. Absolute paths lead
// outside, where the CLI follows none.
func ends(token string) (all []int) {
	token, _, _ = strings.Cut(token, "#")
	if token == "" || token[0] == '/' || token[0] == '~' {
		return nil
	}
	for end := len(token); end > 0; end-- {
		if end == len(token) || strings.IndexByte("*_~|()[]{}<>\"'`!,;:=&\\@?", token[end]) >= 0 {
			all = append(all, end)
		}
	}
	return all
}

// put writes what was noted, with all that it imports in turn. There the files lie as in the repository, so that their own imports lead from
// one to the other by themselves.
func (i *imports) put(ctx context.Context) error {
	for ; len(i.files) > 0; i.files = i.files[1:] {
		f := i.files[0]
		if f.mode == "120000" {
			object, kind, err := i.mirror.follow(ctx, i.commit, f.name)
			if err != nil {
				return err
			}
			if !strings.HasPrefix(kind, "blob ") {
				continue
			}
			f.mode, f.object = "100644", object
		}
		content, err := i.mirror.git.run(ctx, "cat-file", "blob", f.object)
		if err != nil {
			return err
		}
		i.redirect(f.name, content)
		f.name = importDir + "/" + f.name
		if err := f.write(i.root, content); err != nil {
			return fmt.Errorf("write %s: %w", f.name, err)
		}
	}
	return nil
}
