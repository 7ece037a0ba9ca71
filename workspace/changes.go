package workspace

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// The refs of the commits that hold uncommitted work: the index, and the files on top of it.
const (
	indexRef = "refs/errand/index"
	workRef  = "refs/errand/work"
)

// maxRaw bounds the bytes of files that one attempt at a bundle reads and compresses.
const maxRaw = 128 << 20

// changes is the difference between a work tree and its index, and between the index and HEAD.
type changes struct {
	tree   string // of the index
	staged bool   // the index differs from HEAD
	files  []change
}

// change is a file that differs from the index.
type change struct {
	name string
	size int64 // when it was listed; -1: the file is gone
	odd  bool  // cannot be stored: neither file nor link, or a name that git rejects

	added bool // the index does not have it
	lfs   bool // the index has a pointer to other contents in Git LFS
}

// changes lists what must be stored, and reveals what is hidden. Git reads names and times in the work tree, and
// compares contents with the index only.
func (s *shadow) changes(ctx context.Context) (c changes, err error) {
	tree, err := s.git.run(ctx, "write-tree")
	if gitFailed(err) { // unmerged files, or a damaged index
		if err := s.unstage(ctx); err != nil {
			return c, err
		}
		tree, err = s.git.run(ctx, "write-tree")
	}
	if err != nil {
		return c, err
	}
	c.tree = strings.TrimSpace(tree)
	c.staged = c.tree != s.headTree
	if !s.flags {
		if err := s.reveal(ctx); err != nil {
			return c, err
		}
	}

	// Git reads files again that were written in the same second as the index, or later: their times say nothing.
	err = os.Chtimes(filepath.Join(s.dir, "index"), s.indexed, s.indexed)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return c, err
	}
	out, err := s.inTree().run(ctx, "ls-files", "-z", "-t", "--modified", "--deleted", "--others", "--exclude-standard")
	if err != nil {
		return c, err
	}
	tags := map[string]string{}
	for entry := range strings.SplitSeq(out, "\x00") { // "C name", or "R name" and "C name", or "? name"
		tag, name, found := strings.Cut(entry, " ")
		if found && tags[name] != "R" {
			tags[name] = tag
		}
	}
	layered := s.clone.layered()
	for name, tag := range tags {
		if tag == "R" && layered(name) {
			continue // runs see another directory there
		}
		f := s.change(name, tag == "R")
		f.added = tag == "?"
		c.files = append(c.files, f)
	}
	slices.SortFunc(c.files, func(a, b change) int { return strings.Compare(a.name, b.name) })
	c.files, err = s.withoutLFS(ctx, c.files)
	return c, err
}

// unstage resets the index to HEAD, so that staged changes become changes of files.
func (s *shadow) unstage(ctx context.Context) error {
	_, err := s.git.run(ctx, "read-tree", "--reset", "HEAD")
	if gitFailed(err) {
		return s.inTree().renewIndex(ctx, "HEAD")
	}
	return err
}

// renewIndex makes the index of a clone, which git cannot read, that of a commit. What a sparse checkout has left out
// is not known any more: all that is missing counts as left out, or it would be published as removed.
func (g git) renewIndex(ctx context.Context, commit string) error {
	_, err := g.run(ctx, "read-tree", commit)
	if err != nil || !exists(filepath.Join(g.tree, ".git/info/sparse-checkout")) {
		return err
	}
	missing, err := g.run(ctx, "ls-files", "-z", "--deleted")
	if err != nil {
		return err
	}
	return g.updateIndex(ctx, missing, "--skip-worktree")
}

func (s *shadow) change(name string, gone bool) change {
	c := change{name: name, size: -1}
	for part := range strings.SplitSeq(name, "/") {
		c.odd = c.odd || strings.EqualFold(part, ".git") || part == "" // another repository ends in a slash
	}
	info, err := s.files.Lstat(name)
	switch {
	case gone || err != nil || s.throughLink(name): // a link may have replaced its directory
	case info.IsDir() && !s.isRepository(name): // a directory has replaced it
	case info.Mode().IsRegular(), info.Mode()&fs.ModeSymlink != 0:
		c.size = info.Size()
	default:
		c.odd = true
	}
	return c
}

func (s *shadow) isRepository(dir string) bool {
	_, err := s.files.Lstat(path.Join(dir, ".git"))
	return err == nil
}

// throughLink reports whether a directory of the name is a link. Git tracks nothing behind a link.
func (s *shadow) throughLink(name string) bool {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if info, err := s.files.Lstat(dir); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return true
		}
	}
	return false
}

// commit creates the commits of index and files, or none if nothing has changed. Files larger than most, and the
// largest ones if all have more bytes than there is room for, are left out and listed as missing.
func (s *shadow) commit(ctx context.Context, c changes, most, room int64) (work string, missing []string, err error) {
	var stored []change
	// Removals go first: a directory may be in the place of a removed file.
	for _, f := range slices.SortedStableFunc(slices.Values(c.files), func(a, b change) int {
		return cmp.Compare(a.size, b.size)
	}) {
		if f.odd || f.size > min(most, room) {
			missing = append(missing, f.name)
			continue
		}
		stored, room = append(stored, f), room-max(f.size, 0)
	}
	if len(stored) == 0 && !c.staged {
		return "", slices.Sorted(slices.Values(missing)), nil
	}
	in := &importer{files: s.files, changes: stored, most: most, missing: missing}
	who := fmt.Sprintf("committer errand <errand@localhost> %d +0000\ndata 0\n\n", time.Now().Unix())
	fmt.Fprintf(&in.out, "commit %s\n%sfrom %s\nM 040000 %s \"\"\n\n", indexRef, who, s.head, c.tree)
	fmt.Fprintf(&in.out, "commit %s\n%sfrom %s\n", workRef, who, indexRef)
	defer in.close()
	g := s.git
	g.stdin = in
	if _, err := g.run(ctx, "fast-import", "--quiet", "--force", "--done"); err != nil {
		return "", nil, err
	}
	work, err = s.rev(ctx, workRef)
	slices.Sort(in.missing)
	return work, in.missing, err
}

// importer is the input of git fast-import. It reads a file only when git has consumed the previous one.
type importer struct {
	files   *os.Root
	changes []change // still to come
	most    int64    // size of a file
	missing []string // including files that turn out to be too large or unreadable
	out     bytes.Buffer
	large   *largeFile // being read once out is empty
	done    bool
}

// Read implements io.Reader. One goroutine calls it until git has ended.
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

// close closes a large file, whether or not it was read.
func (in *importer) close() {
	if in.large != nil {
		in.large.f.Close()
		in.large = nil
	}
}

// inC quotes a path for fast-import.
var inC = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// write appends one change to out. A file that is gone by now, or is missing, stays as in the index.
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

// read returns a file's content, or a reader for a large file.
func (in *importer) read(name string) (mode string, content []byte, large *largeFile, err error) {
	info, err := in.files.Lstat(name)
	if err != nil {
		return "", nil, nil, err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		target, err := in.files.Readlink(name)
		return "120000", []byte(target), nil, err
	}
	f, info, err := openFile(in.files, name)
	if err != nil {
		return "", nil, nil, err
	}
	mode = "100644"
	if info.Mode()&0o100 != 0 {
		mode = "100755"
	}
	size := info.Size()
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

// maxHeld is the largest size of a file that is read before git learns its length. Checkpoints contain no larger
// files, because an agent could truncate them meanwhile.
const maxHeld = 32 << 20

// largeFile reads a file piece by piece, up to the length that was announced to git.
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
