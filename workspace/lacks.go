package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
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

// lacks notes in made the submodules that have files, and what the work tree lacks of the files and the submodules in
// the index.
func (c clone) lacks(ctx context.Context, made *Clone, files, links []treeFile) error {
	root, err := os.OpenRoot(c.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, f := range links {
		if hollow(root, f.name) {
			made.Lacks = lacking(made.Lacks, Lack{Why: cmp.Or(c.why[f.name], notThen)}, f.name)
		} else {
			made.Submodules = append(made.Submodules, f.name)
		}
	}
	stored, err := c.pointers(ctx, files)
	if err != nil {
		return err
	}
	for _, f := range stored {
		if isPointer(root, f.name) {
			made.Lacks = lacking(made.Lacks, Lack{LFS: true, Why: cmp.Or(c.why[f.name], notThen)}, f.name)
		}
	}
	return nil
}

// notThen is the reason for what a kept clone lacks.
const notThen = "they were not fetched when the clone was made"

// lacking adds a name to the lack of its kind and reason.
func lacking(all []Lack, of Lack, name string) []Lack {
	for i, l := range all {
		if l.LFS == of.LFS && l.Why == of.Why {
			all[i].Names = append(l.Names, name)
			return all
		}
	}
	of.Names = []string{name}
	return append(all, of)
}

// tracked lists the files and the submodules in the index.
func tracked(ctx context.Context, g git) (files, links []treeFile, err error) {
	out, err := g.run(ctx, "ls-files", "--stage", "-z")
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

// usesLFS reports whether attributes in the index leave anything to Git LFS.
func (c clone) usesLFS(ctx context.Context) (bool, error) {
	return c.git.holds(ctx, "grep", "--cached", "--quiet", "--text", "--fixed-strings", "-e", "filter=lfs", "--",
		":(glob)**/.gitattributes")
}

// pointers returns the files that are pointers in the index, and that its attributes leave to Git LFS.
func (c clone) pointers(ctx context.Context, files []treeFile) ([]inLFS, error) {
	if uses, err := c.usesLFS(ctx); !uses {
		return nil, err
	}
	var all strings.Builder
	for _, f := range files {
		all.WriteString(f.name + "\x00")
	}
	left, err := c.git.leftToLFS(ctx, all.String(), "--cached")
	if err != nil {
		return nil, err
	}
	there := map[string]bool{}
	for _, name := range left {
		there[name] = true
	}
	return c.git.readPointers(ctx, slices.DeleteFunc(files, func(f treeFile) bool { return !there[f.name] }))
}

// leftToLFS returns those of the names, which end in a NUL, that attributes leave to Git LFS.
func (g git) leftToLFS(ctx context.Context, names string, how ...string) (left []string, _ error) {
	out, err := g.reading(names).run(ctx, append([]string{"check-attr", "-z", "--stdin"}, append(how, "filter")...)...)
	fields := strings.Split(out, "\x00") // "<name>", "filter", "<value>"
	for i := 2; i < len(fields); i += 3 {
		if fields[i] == "lfs" {
			left = append(left, fields[i-2])
		}
	}
	return left, err
}

// readPointers returns the files whose objects are pointers.
func (g git) readPointers(ctx context.Context, files []treeFile) (list []inLFS, _ error) {
	if len(files) == 0 {
		return nil, nil
	}
	var objects strings.Builder
	for _, f := range files {
		objects.WriteString(f.object + "\n")
	}
	texts, err := g.small(ctx, objects.String(), maxPointer)
	for i, text := range texts {
		if m := pointer.FindStringSubmatch(text); m != nil {
			size, _ := strconv.ParseInt(m[2], 10, 64) // the pattern matches digits only
			list = append(list, inLFS{files[i].name, m[1], size})
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
