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
	"unicode"
	"unicode/utf8"
)

// importDir holds the files that trusted instructions import (@path), from the base commit. In the work tree the same
// path leads to unapproved files. The directory is in .claude, which is removed before the trusted configuration is
// written and is never published.
const importDir = ".claude/errand-imports"

// importForm matches everything that the CLI (2.1.329) may treat as an import after an @. White space is JavaScript's.
// Absolute paths lead outside the repository, where the CLI follows no imports.
var importForm = regexp.MustCompile(`^[a-zA-Z0-9._-](?:[^\s\v\p{Z}\x{feff}\\]|\\ ){0,999}`)

// isInstructions reports whether the CLI looks for imports in a configuration file. It does not do so in agents,
// commands and skills.
func isInstructions(name string) bool {
	switch strings.ToLower(path.Base(name)) {
	case "claude.md", "claude.local.md", "agents.md":
		return true
	}
	return strings.Contains(strings.ToLower("/"+name), "/.claude/rules/")
}

// imports redirects the imports of trusted instructions to files of the base commit.
type imports struct {
	mirror mirror
	commit string
	base   map[string]treeFile // files of the commit, by name
	root   *os.Root            // of the work tree
	files  []treeFile          // to be written
	seen   map[string]bool
}

// redirect rewrites the imports of a file and records the imported files. An import that the base lacks and the work
// tree has is redirected to a missing file. An import that is in neither is text and stays.
func (i *imports) redirect(name, content string) string {
	up := strings.Repeat("../", strings.Count(name, "/"))
	return replaceImports(content, func(token string) (string, int) {
		var target string
		length := 0
		for _, end := range ends(token) { // the longest first
			file := path.Join(path.Dir(name), token[:end])
			if outside(file) {
				continue
			}
			f, inBase := i.base[file]
			if inBase && !i.seen[file] {
				i.seen[file] = true
				i.files = append(i.files, f)
			}
			if length == 0 && (inBase || i.readable(file)) {
				target, length = file, end
			}
		}
		return "@./" + up + importDir + "/" + target, length
	})
}

// outside reports whether a path leads out of the repository.
func outside(name string) bool { return name == ".." || strings.HasPrefix(name, "../") }

// readable reports whether the work tree has something that the CLI may read as a file.
func (i *imports) readable(name string) bool {
	fi, err := i.root.Lstat(name)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENAMETOOLONG)
	}
	return !fi.IsDir()
}

// enclose disables imports of a copy that lead out of the repository, because from the copy's directory they might
// lead into it.
func enclose(name, content string) string {
	return replaceImports(content, func(token string) (string, int) {
		for _, end := range ends(token) {
			if outside(path.Join(path.Dir(name), token[:end])) {
				return "@@" + token[:end], end
			}
		}
		return "", 0
	})
}

// replaceImports replaces everything that the CLI may treat as an import. The CLI ignores imports in code, but
// Markdown parsers disagree about where code begins and ends, and a path of a copy does no harm there. change gets the
// text after an @, without the backslashes before spaces. It returns the replacement and how much of the text it
// replaces.
func replaceImports(content string, change func(token string) (string, int)) string {
	var b strings.Builder
	last := 0
	for at := strings.IndexByte(content, '@'); at >= 0; {
		next := at + 1
		before, _ := utf8.DecodeLastRuneInString(content[:at])
		word := unicode.IsLetter(before) || unicode.IsDigit(before) // as in an address: the CLI requires white space or punctuation there
		if written := importForm.FindString(content[next:]); written != "" && !word {
			token := strings.ReplaceAll(written, `\ `, " ")
			if by, length := change(token); length > 0 {
				b.WriteString(content[last:at] + strings.ReplaceAll(by, " ", `\ `))
				last = next + length + strings.Count(token[:length], " ")
				next = last
			}
		}
		n := strings.IndexByte(content[next:], '@')
		if n < 0 {
			break
		}
		at = next + n
	}
	return b.String() + content[last:]
}

// ends returns the possible ends of an import's path: its full length, or before a punctuation mark that Markdown may
// remove.
func ends(token string) (all []int) {
	token, _, _ = strings.Cut(token, "#")
	for end := len(token); end > 0; end-- {
		if end == len(token) || strings.IndexByte("*_~|()[]{}<>\"'`!,;:=&\\@?", token[end]) >= 0 {
			all = append(all, end)
		}
	}
	return all
}

// put writes the recorded files and everything that they import in turn. They have the same layout as in the
// repository, so imports between them work unchanged.
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
		i.redirect(f.name, content) // records what it imports
		content = enclose(f.name, content)
		f.name = importDir + "/" + f.name
		if err := f.write(i.root, content); err != nil {
			return fmt.Errorf("write %s: %w", f.name, err)
		}
	}
	return nil
}
