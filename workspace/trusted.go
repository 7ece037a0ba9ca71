package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
)

// agentConfig lists what the CLI executes in a project. It gets the texts of a project as Instructions.
var agentConfig = []string{".claude", ".mcp.json"}

// isAgentConfig checks every element of the name, ignoring case as some file systems do.
func isAgentConfig(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if slices.ContainsFunc(agentConfig, func(s string) bool { return strings.EqualFold(s, part) }) {
			return true
		}
	}
	return false
}

// maxRead is the number of files that are read at once.
const maxRead = 50

// trust writes the agent's configuration from the commit base. The clone must be secure.
func (c clone) trust(ctx context.Context, base string) error {
	all, err := c.mirror.tree(ctx, base, ":(icase)*.claude*", ":(icase)*.mcp.json*")
	if err != nil {
		return err
	}
	files, left, err := c.mirror.resolved(ctx, base, all, isAgentConfig)
	if err != nil {
		return err
	}
	if left > 0 { // without a part of it the rest may permit more
		return fmt.Errorf("the trusted configuration has more than %d links, or more than %d files behind them",
			maxLinks, maxLinked)
	}
	root, err := os.OpenRoot(c.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := removeConfig(root); err != nil {
		return err
	}
	for some := range slices.Chunk(files, maxRead) {
		var names strings.Builder
		for _, f := range some {
			names.WriteString(f.object + "\n")
		}
		read, err := c.mirror.git.objects(ctx, names.String())
		if err != nil {
			return err
		}
		for i, f := range some {
			if err := f.write(root, read[i].content); err != nil {
				return fmt.Errorf("write %s: %w", f.name, err)
			}
		}
	}
	return c.hide(ctx)
}

// removeConfig removes the configuration from the work tree, tracked or not. The CLI cannot obey what it cannot read.
func removeConfig(root *os.Root) error {
	return fs.WalkDir(os.DirFS(root.Name()), ".", func(name string, d fs.DirEntry, err error) error {
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

// Bounds of links in what an agent obeys.
const (
	maxLinks  = 50
	maxLinked = 20_000 // files below them
)

// resolved lists the files of a commit whose names are wanted, given all of its files. It resolves links within the
// commit (.claude/skills -> ../skills), because in the work tree they would lead to untrusted files. It leaves out
// links that lead out of the commit. left counts the links beyond the bounds.
func (m mirror) resolved(
	ctx context.Context, commit string, all []treeFile, wanted func(name string) bool,
) (files []treeFile, left int, err error) {
	links, names, known := 0, 0, map[string][]treeFile{}
	for _, f := range all {
		if !wanted(f.name) {
			continue
		}
		if f.mode != "120000" {
			files = append(files, f)
			continue
		}
		if links++; links > maxLinks || names > maxLinked {
			left++
			continue
		}
		object, kind, err := m.follow(ctx, commit, f.name)
		if err != nil {
			return nil, 0, err
		}
		switch {
		case strings.HasPrefix(kind, "blob "):
			files = append(files, treeFile{f.name, "100644", object})
		case strings.HasPrefix(kind, "tree "):
			below, listed := known[object]
			if !listed {
				if below, err = m.tree(ctx, object); err != nil {
					return nil, 0, err
				}
				known[object] = below
			}
			if names += len(below); names > maxLinked {
				left++
				continue
			}
			for _, b := range below {
				if b.mode != "120000" {
					files = append(files, treeFile{f.name + "/" + b.name, b.mode, b.object})
				}
			}
		}
	}
	return files, left, nil
}

// ErrTooLarge means that a file has more bytes than its reader accepts.
var ErrTooLarge = errors.New("the file is too large")

// BaseFile returns a file of the protected branch at c.ProtectedSHA, whatever the agent has changed since, or "" if
// there is no such file. It returns ErrTooLarge for a file of more than limit bytes.
func (w *Workspace) BaseFile(ctx context.Context, c Clone, name string, limit int) (content string, err error) {
	defer wrap(&err, "read %s of %s", name, c.Repo)
	own, release, err := w.reach(ctx, c)
	if err != nil {
		return "", err
	}
	defer release()
	object, kind, err := own.mirror.follow(ctx, c.ProtectedSHA, name)
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

// tree lists the files of a commit or tree, without submodules: all, or those whose names match a pattern, in which a *
// stands for any text. Unlike git ls-tree, git diff-tree has patterns, and listing all files takes long in a large
// repository.
func (m mirror) tree(ctx context.Context, object string, patterns ...string) ([]treeFile, error) {
	args := append([]string{"diff-tree", "-r", "-z", "--no-renames", emptyTree, object, "--"}, patterns...)
	out, err := m.git.run(ctx, args...)
	if err != nil {
		return nil, err
	}
	var files []treeFile
	fields := strings.Split(out, "\x00") // ":000000 <mode> <no object> <object> A", "<name>"
	for i := 0; i+1 < len(fields); i += 2 {
		if f := strings.Fields(fields[i]); len(f) == 5 && f[1] != "160000" {
			files = append(files, treeFile{fields[i+1], f[1], f[3]})
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
	if err := c.git.updateIndex(ctx, names.String(), "--skip-worktree"); err != nil {
		return err
	}
	const exclude = ".git/info/exclude"
	old, _ := root.ReadFile(exclude) // what cannot be read, such as a directory of an agent, gives way
	ours := "# put by errand as it is on the base branch\n" + strings.Join(agentConfig, "\n") + "\n"
	if strings.Contains(string(old), ours) {
		return nil
	}
	return put(root, exclude, ours+string(old))
}
