package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Lack is what a clone has only as an empty directory or as a pointer.
type Lack struct {
	// LFS says that Names are files in Git LFS; otherwise they are directories of submodules.
	LFS   bool
	Names []string
	// Why is a clause for people.
	Why string
}

// String describes the lack in a sentence for people and agents.
func (l Lack) String() string {
	what := "directories of submodules are empty"
	if l.LFS {
		what = "files have the pointer to Git LFS instead of their content"
	}
	names := slices.Clone(l.Names[:min(len(l.Names), maxLacking)])
	for i, name := range names {
		names[i] = strings.ToValidUTF8(strings.Map(printable, name[:min(len(name), maxLackName)]), "")
	}
	if more := len(l.Names) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return fmt.Sprintf("These %s, because %s: %s.", what, l.Why, strings.Join(names, ", "))
}

const (
	maxLacking  = 10  // names in a sentence
	maxLackName = 100 // bytes of one of them
)

// pointer is the text that git has in place of a file in Git LFS. Those of extensions of Git LFS are not recognised.
var pointer = regexp.MustCompile(
	`^version https://git-lfs\.github\.com/spec/v1\noid sha256:([0-9a-f]{64})\nsize ([0-9]{1,18})\n?$`)

// maxPointer is what a pointer is shorter than.
const maxPointer = 1024

// lacks lists what the work tree lacks of what its index has.
func (c clone) lacks(ctx context.Context) (all []Lack, _ error) {
	files, links, err := c.tracked(ctx)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(c.dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	var empty []string
	for _, f := range links {
		if hollow(root, f.name) {
			empty = append(empty, f.name)
		}
	}
	if len(empty) > 0 {
		all = append(all, Lack{Names: empty, Why: "errand does not fetch submodules"})
	}
	stored, err := c.pointers(ctx, files)
	if err != nil {
		return nil, err
	}
	var without []string
	for _, f := range stored {
		if isPointer(root, f.name) {
			without = append(without, f.name)
		}
	}
	if len(without) > 0 {
		all = append(all, Lack{LFS: true, Names: without, Why: "errand does not fetch from Git LFS"})
	}
	return all, nil
}

// tracked lists the files and the submodules in the index.
func (c clone) tracked(ctx context.Context) (files, links []treeFile, err error) {
	out, err := c.git.run(ctx, "ls-files", "--stage", "-z")
	if err != nil {
		return nil, nil, err
	}
	for entry := range strings.SplitSeq(out, "\x00") { // "100644 <object> <stage>\t<name>"
		meta, name, found := strings.Cut(entry, "\t")
		mode, rest, _ := strings.Cut(meta, " ")
		object, _, _ := strings.Cut(rest, " ")
		switch {
		case !found:
		case mode == "160000":
			links = append(links, treeFile{name, mode, object})
		case strings.HasPrefix(mode, "100"):
			files = append(files, treeFile{name, mode, object})
		}
	}
	return files, links, nil
}

// hollow reports whether a directory is missing or empty.
func hollow(root *os.Root, name string) bool {
	info, err := root.Lstat(name)
	if err != nil || !info.IsDir() {
		return errors.Is(err, fs.ErrNotExist)
	}
	entries, err := fs.ReadDir(root.FS(), name)
	return err == nil && len(entries) == 0
}

// isPointer reports whether a file of the work tree has a pointer as its content.
func isPointer(root *os.Root, name string) bool {
	if info, err := root.Lstat(name); err != nil || !info.Mode().IsRegular() || info.Size() >= maxPointer {
		return false
	}
	text, err := root.ReadFile(name)
	return err == nil && pointer.Match(text)
}

// inLFS is a file that git has only as a pointer.
type inLFS struct {
	name string
	oid  string // SHA-256 of the content
	size int64
}

// pointers returns the files that are pointers in the index, and that its attributes leave to Git LFS.
func (c clone) pointers(ctx context.Context, files []treeFile) (list []inLFS, _ error) {
	_, err := c.git.run(ctx, "grep", "--cached", "--quiet", "--text", "--fixed-strings", "-e", "filter=lfs", "--",
		":(glob)**/.gitattributes")
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 1 {
		return nil, nil // not found
	}
	if err != nil {
		return nil, err
	}
	var all strings.Builder
	for _, f := range files {
		all.WriteString(f.name + "\x00")
	}
	out, err := c.git.reading(all.String()).run(ctx, "check-attr", "--cached", "-z", "--stdin", "filter")
	if err != nil {
		return nil, err
	}
	var objects strings.Builder
	var asked []string
	for i, field := range strings.Split(out, "\x00") { // "<name>", "filter", "<value>" for each file in order
		if i%3 == 2 && field == "lfs" {
			asked = append(asked, files[i/3].name)
			objects.WriteString(files[i/3].object + "\n")
		}
	}
	texts, err := c.git.small(ctx, objects.String(), maxPointer)
	for i, text := range texts {
		if m := pointer.FindStringSubmatch(text); m != nil {
			size, _ := strconv.ParseInt(m[2], 10, 64) // the pattern matches digits only
			list = append(list, inLFS{asked[i], m[1], size})
		}
	}
	return list, err
}

// small reads those of the objects, each in a line, that are shorter than a limit. The others are "".
func (g git) small(ctx context.Context, names string, limit int) ([]string, error) {
	out, err := g.reading(names).run(ctx, "cat-file", "--batch-check=%(objectname) %(objectsize)")
	if err != nil {
		return nil, err
	}
	var short strings.Builder
	var at []int
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	for i, line := range lines {
		object, size, _ := strings.Cut(line, " ")
		if n, err := strconv.Atoi(size); err == nil && n < limit {
			short.WriteString(object + "\n")
			at = append(at, i)
		}
	}
	read, err := g.objects(ctx, short.String())
	texts := make([]string, len(lines))
	for i, object := range read {
		texts[at[i]] = object.content
	}
	return texts, err
}
