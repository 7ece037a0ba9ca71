package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
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
const maxPointer = 200

// lacks notes in made the submodules that have files, and what the work tree lacks of an inventory and within them.
func (c clone) lacks(made *Clone, links []treeFile, pointers []inLFS, there inside) error {
	root, err := os.OpenRoot(c.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	made.LFS = len(pointers) > 0
	for _, s := range there.All {
		if s.In != "" && !hollow(root, s.In) {
			links = append(links, treeFile{name: s.Name})
		}
	}
	for _, name := range there.Pointers {
		c.why[name] = whyInner
		pointers = append(pointers, inLFS{name: name})
	}
	for _, f := range links {
		if hollow(root, f.name) {
			made.Lacks = lacking(made.Lacks, Lack{Why: cmp.Or(c.why[f.name], notThen)}, f.name)
		} else {
			made.Submodules = append(made.Submodules, f.name)
		}
	}
	for _, f := range pointers {
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
		return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
	}
	entries, err := fs.ReadDir(root.FS(), name)
	return err == nil && len(entries) == 0
}

// isPointer reports whether a file of the work tree has a pointer as its content.
func isPointer(root *os.Root, name string) bool {
	file, info, err := openFile(root, name)
	if err != nil {
		return false
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxPointer))
	return err == nil && info.Size() < maxPointer && pointer.Match(text) && !isLink(root, name)
}

func isLink(root *os.Root, name string) bool {
	info, err := root.Lstat(name)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// inLFS is a file that git has only as a pointer.
type inLFS struct {
	content

	name string
}

// content is what a pointer leads to.
type content struct {
	OID  string `json:"oid"` // SHA-256
	Size int64  `json:"size"`
}

// inventory lists what git does not check out: the submodules in the index, and the files that are pointers there and
// that its attributes leave to Git LFS. With an error it returns the submodules, if it knows them.
func (g git) inventory(ctx context.Context) (links []treeFile, pointers []inLFS, err error) {
	files, links, err := tracked(ctx, g)
	if err != nil {
		return nil, nil, err
	}
	uses, err := g.holds(ctx, "grep", "--cached", "--quiet", "--text", "--fixed-strings", "-e", "filter=lfs", "--",
		":(glob)**/.gitattributes")
	if err != nil || !uses { // the list of names is long
		return links, nil, err
	}
	var names strings.Builder
	for _, f := range files {
		names.WriteString(f.name + "\x00")
	}
	left, err := g.leftToLFS(ctx, names.String(), "--cached")
	if err != nil {
		return links, nil, err
	}
	there := map[string]bool{}
	for _, name := range left {
		there[name] = true
	}
	files = slices.DeleteFunc(files, func(f treeFile) bool { return !there[f.name] })
	pointers, _, err = g.readPointers(ctx, files)
	return links, pointers, err
}

// leftToLFS returns those of the names, which end in a NUL, that attributes leave to Git LFS.
func (g git) leftToLFS(ctx context.Context, names string, how ...string) (left []string, _ error) {
	if names == "" {
		return nil, nil
	}
	out, err := g.reading(names).run(ctx, append([]string{"check-attr", "-z", "--stdin"}, append(how, "filter")...)...)
	fields := strings.Split(out, "\x00") // "<name>", "filter", "<value>"
	for i := 2; i < len(fields); i += 3 {
		if fields[i] == "lfs" {
			left = append(left, fields[i-2])
		}
	}
	return left, err
}

// readPointers returns the files whose objects are pointers, and the sizes of all. An object may be any name of git's
// without line breaks.
func (g git) readPointers(ctx context.Context, files []treeFile) (list []inLFS, sizes []int64, _ error) {
	if len(files) == 0 {
		return nil, nil, nil
	}
	var objects, short strings.Builder
	for _, f := range files {
		objects.WriteString(f.object + "\n")
	}
	out, err := g.reading(objects.String()).run(ctx, "cat-file",
		"--batch-check=%(objecttype) %(objectname) %(objectsize)")
	if err != nil {
		return nil, nil, err
	}
	var at []int // the files whose objects are short
	for line := range strings.Lines(out) {
		size := int64(0)
		if blob := strings.Fields(line); len(blob) == 3 && blob[0] == "blob" { // otherwise "<object> missing"
			if size, err = strconv.ParseInt(blob[2], 10, 64); err != nil {
				return nil, nil, errOutput
			}
			if size < maxPointer {
				short.WriteString(blob[1] + "\n")
				at = append(at, len(sizes))
			}
		}
		sizes = append(sizes, size)
	}
	texts, err := g.objects(ctx, short.String())
	for i, text := range texts {
		if m := pointer.FindStringSubmatch(text.content); m != nil {
			size, _ := strconv.ParseInt(m[2], 10, 64) // the pattern matches digits only
			list = append(list, inLFS{content{m[1], size}, files[at[i]].name})
		}
	}
	return list, sizes, err
}
