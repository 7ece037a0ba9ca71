package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// The commits that carry what is not committed: the index, and on top of it the files.
const (
	indexRef = "refs/errand/index"
	workRef  = "refs/errand/work"
)

// maxRaw bounds what is read and compressed for one attempt at a bundle.
const maxRaw = 128 << 20

// changes is how a work tree differs from its index, and the index from HEAD.
type changes struct {
	tree   string // the index
	staged bool   // it is not that of HEAD
	files  []change
}

// change is a file that is not as in the index.
type change struct {
	name string
	size int64 // as it was listed; -1: the file is gone
	odd  bool  // neither file nor link, or of a name that git does not take: cannot be kept
}

// changes lists what is to be kept. Git reads names and times in the work tree, and of a file's content only whether it is as in the index.
func (s *shadow) changes(ctx context.Context) (c changes, err error) {
	tree, err := s.git.run(ctx, "write-tree")
	if _, failed := errors.AsType[*gitError](err); failed { // unmerged files, or an index that is none
		if err := s.unstage(ctx); err != nil {
			return c, err
		}
		tree, err = s.git.run(ctx, "write-tree")
	}
	if err != nil {
		return c, err
	}
	head, err := s.rev(ctx, "HEAD^{tree}")
	if err != nil {
		return c, err
	}
	c.tree = strings.TrimSpace(tree)
	c.staged = c.tree != head

	g := s.git
	g.tree = s.files.Name()
	out, err := g.run(ctx, "ls-files", "-z", "-t", "--modified", "--deleted", "--others", "--exclude-standard")
	if err != nil {
		return c, err
	}
	gone := map[string]bool{}
	for entry := range strings.SplitSeq(out, "\x00") { // "C name", or "R name" and "C name", or "? name"
		tag, name, found := strings.Cut(entry, " ")
		if found {
			gone[name] = gone[name] || tag == "R"
		}
	}
	for name, gone := range gone {
		c.files = append(c.files, s.change(name, gone))
	}
	slices.SortFunc(c.files, func(a, b change) int { return strings.Compare(a.name, b.name) })
	return c, nil
}

// unstage makes the index that of HEAD, so that whatever was staged is a change of a file.
func (s *shadow) unstage(ctx context.Context) error {
	_, err := s.git.run(ctx, "read-tree", "--reset", "HEAD")
	if _, failed := errors.AsType[*gitError](err); failed {
		if err := os.Remove(s.dir + "/index"); err != nil {
			return err
		}
		_, err = s.git.run(ctx, "read-tree", "HEAD")
	}
	return err
}

func (s *shadow) change(name string, gone bool) change {
	c := change{name: name, size: -1}
	for part := range strings.SplitSeq(name, "/") {
		c.odd = c.odd || strings.EqualFold(part, ".git") || part == "" // another repository ends in a slash
	}
	info, err := s.files.Lstat(name)
	switch {
	case gone || err != nil || s.throughLink(name): // in place of its directory there may be a link
	case info.Mode().IsRegular(), info.Mode()&fs.ModeSymlink != 0:
		c.size = info.Size()
	default:
		c.odd = true
	}
	return c
}

// throughLink reports whether a directory of the name is a link. Nothing that git knows lies behind one.
func (s *shadow) throughLink(name string) bool {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if info, err := s.files.Lstat(dir); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return true
		}
	}
	return false
}

// commit makes the commits of index and files, without those larger than most, which are missing. There is none if most is 0 or there is
// nothing to keep. errLong says that there is more than raw to read, too much to even try.
func (s *shadow) commit(ctx context.Context, head string, c changes, most, raw int64) (work string, missing []string, err error) {
	var gone, there []change
	total := int64(0)
	for _, f := range c.files {
		switch {
		case f.odd, f.size > most, most == 0:
			missing = append(missing, f.name)
		case f.size < 0:
			gone = append(gone, f)
		default:
			there = append(there, f)
			total += f.size
		}
	}
	switch {
	case total > raw:
		return "", nil, errLong
	case most == 0, len(gone)+len(there) == 0 && !c.staged:
		return "", missing, nil
	}
	// What is gone goes first: there may be a directory in its place.
	in := &importer{files: s.files, changes: append(gone, there...), most: most, missing: missing}
	who := fmt.Sprintf("committer errand <errand@localhost> %d +0000\ndata 0\n\n", time.Now().Unix())
	fmt.Fprintf(&in.out, "commit %s\n%sfrom %s\nM 040000 %s \"\"\n\n", indexRef, who, head, c.tree)
	fmt.Fprintf(&in.out, "commit %s\n%sfrom %s\n", workRef, who, indexRef)
	defer in.close()
	g := s.git
	g.stdin = in
	if _, err := g.run(ctx, "fast-import", "--quiet", "--force", "--done"); err != nil {
		return "", nil, err
	}
	work, err = s.rev(ctx, workRef)
	return work, in.missing, err
}

// importer is the input of git fast-import: it reads a file when git has taken the one before.
type importer struct {
	files   *os.Root
	changes []change // still to come
	most    int64    // size of a file
	missing []string // with those that turn out to be larger, or not to be read
	out     bytes.Buffer
	large   *largeFile // being read, when out is empty
	done    bool
}

// Read is called by one goroutine, until git has ended.
func (in *importer) Read(p []byte) (int, error) {
	for in.out.Len() == 0 {
		if in.large != nil {
			n, err := in.large.Read(p)
			if n > 0 || !errors.Is(err, io.EOF) {
				return n, err
			}
			in.close()
			in.out.WriteByte('\n')
			break
		}
		if in.done {
			return 0, io.EOF
		}
		if len(in.changes) == 0 {
			in.out.WriteString("done\n")
			in.done = true
			break
		}
		in.write(in.changes[0])
		in.changes = in.changes[1:]
	}
	return in.out.Read(p)
}

// close lets go of a large file, read or not.
func (in *importer) close() {
	if in.large != nil {
		in.large.f.Close()
		in.large = nil
	}
}

// inC is how a path is quoted.
var inC = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// write puts one change into out. A file that is gone by now, or is missing, is as the index has it.
func (in *importer) write(c change) {
	path := `"` + inC.Replace(c.name) + `"`
	if c.size < 0 {
		fmt.Fprintf(&in.out, "D %s\n", path)
		return
	}
	mode, content, large, err := in.read(c.name)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		in.missing = append(in.missing, c.name)
		return
	}
	fmt.Fprintf(&in.out, "M %s inline %s\n", mode, path)
	if large != nil {
		fmt.Fprintf(&in.out, "data %d\n", large.left)
		in.large = large
		return
	}
	fmt.Fprintf(&in.out, "data %d\n", len(content))
	in.out.Write(content)
	in.out.WriteByte('\n')
}

// read gives a file's content, or, of a large one, from where it can be read.
func (in *importer) read(name string) (mode string, content []byte, large *largeFile, err error) {
	info, err := in.files.Lstat(name)
	if err != nil {
		return "", nil, nil, err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		target, err := in.files.Readlink(name)
		return "120000", []byte(target), nil, err
	}
	f, size, err := openFile(in.files, name)
	if err != nil {
		return "", nil, nil, err
	}
	mode = "100644"
	if info.Mode()&0o100 != 0 {
		mode = "100755"
	}
	if size > maxHeld && size <= in.most {
		return mode, nil, &largeFile{f, size}, nil
	}
	defer f.Close()
	if size > in.most {
		return "", nil, nil, errLong
	}
	content, err = io.ReadAll(io.LimitReader(f, size))
	return mode, content, nil, err
}

// maxHeld is the size of a file that is read before git is told how long it is. A checkpoint has no larger ones: they could become
// shorter under the hands of an agent.
const maxHeld = 32 << 20

// largeFile is read piece by piece, for as long as git was told it is.
type largeFile struct {
	f    *os.File
	left int64
}

func (l *largeFile) Read(p []byte) (int, error) {
	if l.left == 0 {
		return 0, io.EOF
	}
	n, err := l.f.Read(p[:min(int64(len(p)), l.left)])
	if l.left -= int64(n); n > 0 {
		return n, nil
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return 0, err
}
