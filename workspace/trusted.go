package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"
)

// agentConfig lists the files that the CLI obeys or executes: in the root, in parents of the working directory, and
// below it as soon as it reads a file there.
var agentConfig = []string{".claude", "CLAUDE.md", "CLAUDE.local.md", "AGENTS.md", ".mcp.json"}

// isAgentConfig checks every element of the name, ignoring case as some file systems do.
func isAgentConfig(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if slices.ContainsFunc(agentConfig, func(s string) bool { return strings.EqualFold(s, part) }) {
			return true
		}
	}
	return false
}

// trust writes the agent's configuration from the commit base. The clone must be secure.
func (c clone) trust(ctx context.Context, base string) error {
	all, err := c.mirror.tree(ctx, base)
	if err != nil {
		return err
	}
	files, err := c.mirror.agentConfig(ctx, base, all)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(c.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := removeConfig(root); err != nil {
		return err
	}
	imports := imports{mirror: c.mirror, commit: base, base: map[string]treeFile{}, root: root, seen: map[string]bool{}}
	for _, f := range all {
		imports.base[f.name] = f
	}
	for _, f := range files {
		content, err := c.mirror.git.run(ctx, "cat-file", "blob", f.object)
		if err != nil {
			return err
		}
		if isInstructions(f.name) {
			content = imports.redirect(f.name, content)
		}
		if err := f.write(root, content); err != nil {
			return fmt.Errorf("write %s: %w", f.name, err)
		}
	}
	if err := imports.put(ctx); err != nil {
		return err
	}
	return c.hide(ctx)
}

// removeConfig removes the configuration from the work tree, tracked or not. The CLI cannot obey what it cannot read.
func removeConfig(root *os.Root) error {
	return fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrPermission):
			return fs.SkipDir
		case err != nil:
			return err
		case d.Name() == ".git" && d.IsDir():
			return fs.SkipDir
		case !isAgentConfig(d.Name()):
			return nil
		}
		return removeEntry(root, name, d)
	})
}

// treeFile is one file of a commit.
type treeFile struct {
	name, mode, object string
}

// agentConfig lists the configuration in a commit, given all of its files. It resolves links within the commit
// (CLAUDE.md -> AGENTS.md, .claude/skills -> ../skills), because in the work tree they would lead to untrusted files.
// It leaves out links that lead out of the commit.
func (m mirror) agentConfig(ctx context.Context, commit string, all []treeFile) ([]treeFile, error) {
	var files []treeFile
	for _, f := range all {
		if !isAgentConfig(f.name) {
			continue
		}
		if f.mode != "120000" {
			files = append(files, f)
			continue
		}
		object, kind, err := m.follow(ctx, commit, f.name)
		if err != nil {
			return nil, err
		}
		switch {
		case strings.HasPrefix(kind, "blob "):
			files = append(files, treeFile{f.name, "100644", object})
		case strings.HasPrefix(kind, "tree "):
			below, err := m.tree(ctx, object)
			if err != nil {
				return nil, err
			}
			for _, b := range below {
				if b.mode != "120000" {
					files = append(files, treeFile{f.name + "/" + b.name, b.mode, b.object})
				}
			}
		}
	}
	return files, nil
}

// ErrTooLarge means that a file has more bytes than its reader accepts.
var ErrTooLarge = errors.New("the file is too large")

// BaseFile returns a file of the base branch at c.BaseSHA, whatever the agent has changed since, or "" if there is no
// such file. It returns ErrTooLarge for a file of more than limit bytes.
func (w *Workspace) BaseFile(ctx context.Context, c Clone, name string, limit int) (content string, err error) {
	defer wrap(&err, "read %s of %s", name, c.Repo)
	own, release, err := w.reach(ctx, c)
	if err != nil {
		return "", err
	}
	defer release()
	object, kind, err := own.mirror.follow(ctx, c.BaseSHA, name)
	size, isFile := strings.CutPrefix(kind, "blob ")
	if err != nil || !isFile {
		return "", err
	}
	if n, _ := strconv.Atoi(strings.TrimSpace(size)); n > limit {
		return "", ErrTooLarge
	}
	return own.mirror.git.run(ctx, "cat-file", "blob", object)
}

// follow returns the target of a link within its commit; kind is the object's type, or any other word.
func (m mirror) follow(ctx context.Context, commit, name string) (object, kind string, err error) {
	out, err := m.git.reading(commit+":"+name).run(ctx, "cat-file", "--batch-check", "--follow-symlinks")
	object, kind, _ = strings.Cut(out, " ")
	return object, kind, err
}

// tree lists the files of a commit or tree, without submodules.
func (m mirror) tree(ctx context.Context, object string) ([]treeFile, error) {
	out, err := m.git.run(ctx, "ls-tree", "-r", "-z", "--full-tree", object)
	if err != nil {
		return nil, err
	}
	var files []treeFile
	for line := range strings.SplitSeq(out, "\x00") { // "100644 blob <object>\t<name>"
		meta, name, _ := strings.Cut(line, "\t")
		if f := strings.Fields(meta); len(f) == 3 && f[1] == "blob" {
			files = append(files, treeFile{name, f[0], f[2]})
		}
	}
	return files, nil
}

// write writes a file. It skips the file if the work tree has a file or a link in place of its directory: the CLI does
// not look for it there.
func (f treeFile) write(root *os.Root, content string) error {
	if made, err := makeDir(root, path.Dir(f.name)); !made {
		return err
	}
	mode := fs.FileMode(0o644)
	if f.mode == "100755" { // hooks are scripts
		mode = 0o755
	}
	return root.WriteFile(f.name, []byte(content), mode)
}

// hide keeps the difference out of status and commit -a: skip-worktree for files in the index, an exclude for files
// that only Base has.
func (c clone) hide(ctx context.Context) error {
	root, err := os.OpenRoot(c.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	out, err := c.git.run(ctx, "ls-files", "--stage", "-z")
	if err != nil {
		return err
	}
	var names strings.Builder
	for line := range strings.SplitSeq(out, "\x00") { // "100644 <object> <stage>\t<name>"
		meta, name, _ := strings.Cut(line, "\t")
		if strings.HasSuffix(meta, " 0") && isAgentConfig(name) { // a conflict cannot be marked, and should be visible
			names.WriteString(name + "\x00")
		}
	}
	if names.Len() > 0 {
		git := c.git.reading(names.String())
		if _, err := git.run(ctx, "update-index", "-z", "--skip-worktree", "--stdin"); err != nil {
			return err
		}
	}
	const exclude = ".git/info/exclude"
	old, _ := root.ReadFile(exclude) // what cannot be read, such as a directory of an agent, gives way
	ours := "# put by errand as it is on the base branch\n" + strings.Join(agentConfig, "\n") + "\n"
	if strings.Contains(string(old), ours) {
		return nil
	}
	return put(root, exclude, ours+string(old))
}

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
		// The CLI requires white space or punctuation before the @. An address has a letter or a digit there.
		word := unicode.IsLetter(before) || unicode.IsDigit(before)
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
