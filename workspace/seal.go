package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

const (
	maxFile   = 10 << 20 // bytes of a published file
	maxCommit = 64 << 20 // bytes of all files of the commit that errand creates
)

// work describes the content of a clone.
type work struct {
	head, tree string // the commit checked out; a tree of all files as they are
	known      bool   // the mirror has all of it
}

func (s *shadow) work(ctx context.Context, trusted bool) (w work, err error) {
	if len(s.unfinished) > 0 {
		return w, fmt.Errorf("%w: %s is not finished", ErrUnfit, s.unfinished[0])
	}
	w.head = s.head
	if w.tree, err = s.everything(ctx, trusted); err != nil || w.tree != s.headTree {
		return w, err
	}
	beyond, err := s.git.run(ctx, "rev-list", "--max-count=1", w.head, "--not", "--alternate-refs")
	w.known = err == nil && beyond == ""
	return w, err
}

// seal returns the commit to publish: the one checked out, plus one commit of the uncommitted work on top of parent.
func (s *shadow) seal(ctx context.Context, w work, parent string, p Publication) (tip string, err error) {
	if w.tree == s.headTree { // nothing is uncommitted
		return w.head, s.weigh(ctx, w.head)
	}
	tip = parent
	old, err := s.rev(ctx, parent+"^{tree}")
	if err == nil && w.tree != old {
		tip, err = s.commitTree(ctx, w.tree, parent, p)
	}
	if err != nil {
		return "", err
	}
	return tip, s.weigh(ctx, tip)
}

// everything returns the tree of all files in the work tree. Git reads those that differ from the index, so that line
// ends are converted as the repository requires.
func (s *shadow) everything(ctx context.Context, trusted bool) (tree string, err error) {
	c, err := s.changes(ctx)
	if err != nil {
		return "", err
	}
	var gone, there strings.Builder
	total := int64(0)
	for _, f := range c.files {
		switch total += max(f.size, 0); {
		case f.odd:
			return "", fmt.Errorf("%w: %q is neither a file nor a link, or is a separate repository", ErrUnfit, f.name)
		case f.size > maxFile:
			return "", fmt.Errorf("%w: %q has %d MiB, and at most %d are allowed", ErrUnfit, f.name,
				f.size>>20, maxFile>>20)
		case f.size < 0:
			gone.WriteString(f.name + "\x00")
		default:
			there.WriteString(f.name + "\x00")
		}
	}
	if err := s.fitLFS(ctx, c.files); err != nil {
		return "", err
	}
	if total > maxCommit {
		return "", fmt.Errorf("%w: its files have %d MiB together, and at most %d are allowed", ErrUnfit,
			total>>20, maxCommit>>20)
	}
	g := s.inTree()
	// Removals go first: a directory may be in the place of a removed file.
	if err := g.updateIndex(ctx, gone.String(), "--force-remove"); err != nil {
		return "", err
	}
	if err := g.updateIndex(ctx, there.String(), "--add", "--replace"); err != nil {
		return "", err
	}
	if trusted {
		if err := s.unstageConfig(ctx); err != nil {
			return "", err
		}
	}
	tree, err = s.git.run(ctx, "write-tree")
	return strings.TrimSpace(tree), err
}

// unstageConfig resets the agent's configuration in the index to HEAD, because the work tree has errand's version of
// it.
func (s *shadow) unstageConfig(ctx context.Context) error {
	out, err := s.git.run(ctx, "diff-index", "--cached", "--raw", "--no-renames", "--no-abbrev", "-z", "HEAD")
	if err != nil {
		return err
	}
	var info strings.Builder
	fields := strings.Split(out, "\x00") // ":<mode of HEAD> <mode> <object of HEAD> <object> <status>", "<name>"
	for i := 0; i+1 < len(fields); i += 2 {
		meta, name := strings.Fields(strings.TrimPrefix(fields[i], ":")), fields[i+1]
		if isAgentConfig(name) {
			fmt.Fprintf(&info, "%s %s\t%s\x00", meta[0], meta[2], name) // mode 0 removes it
		}
	}
	_, err = s.git.reading(info.String()).run(ctx, "update-index", "-z", "--index-info")
	return err
}

func (s *shadow) commitTree(ctx context.Context, tree, parent string, p Publication) (string, error) {
	name, email, _ := strings.Cut(strings.TrimSuffix(cmp.Or(p.Author, Unknown), ">"), " <")
	g := s.git.having("GIT_AUTHOR_NAME="+name, "GIT_AUTHOR_EMAIL="+email, "GIT_COMMITTER_NAME="+name,
		"GIT_COMMITTER_EMAIL="+email)
	out, err := g.reading(p.Message).run(ctx, "commit-tree", "-p", parent, "-F", "-", tree)
	return strings.TrimSpace(out), err
}

// weigh refuses commits, including the agent's own, with files that are too large, or with pointers whose contents the
// server of Git LFS lacks: whoever clones them would get nothing. A file that the mirror has may move: that server has
// what its pointer leads to, even if the mirror does not.
func (s *shadow) weigh(ctx context.Context, tip string) (err error) {
	defer func() {
		if errors.Is(err, errLong) {
			err = fmt.Errorf("%w: its commits change too many files to be checked", ErrUnfit)
		}
	}()
	beyond := []string{tip, "--not", "--alternate-refs"}
	doubtful, err := s.doubtful(ctx, beyond)
	if err != nil || len(doubtful) == 0 { // the log grows with all files that the commits move
		return err
	}
	// rev-list names an object once, up to a line feed. -c: of a merge, what none of its parents has.
	changed := []string{"log", "--format=", "--raw", "-z", "-c", "--no-renames", "--no-abbrev", "--diff-filter=d"}
	out, err := s.git.run(ctx, append(changed, beyond...)...)
	if err != nil {
		return err
	}
	var unknown strings.Builder
	fields := strings.Split(out, "\x00") // ":<mode>… <object>… <status>", "<name>"
	for i := 0; i+1 < len(fields); i += 2 {
		meta, name := strings.Fields(fields[i]), fields[i+1]
		large, found := doubtful[meta[len(meta)-2]]
		if large {
			return fmt.Errorf("%w: %q is in its commits and has more than %d MiB", ErrUnfit, name, maxFile>>20)
		}
		if found {
			unknown.WriteString(name + "\x00")
		}
	}
	left, err := s.git.leftToLFS(ctx, unknown.String(), "--cached")
	if err == nil && len(left) > 0 {
		err = belongsToLFS(left[0])
	}
	return err
}

// doubtful returns the objects of commits that are too large, and with false the pointers whose contents the server of
// Git LFS lacks if the files' attributes leave them to it.
func (s *shadow) doubtful(ctx context.Context, commits []string) (map[string]bool, error) {
	out, err := s.git.run(ctx, append([]string{"rev-list", "--objects", "--no-object-names"}, commits...)...)
	if err != nil {
		return nil, err
	}
	var lacking []treeFile
	for object := range strings.FieldsSeq(out) {
		lacking = append(lacking, treeFile{name: object, object: object})
	}
	pointers, sizes, err := s.git.readPointers(ctx, lacking)
	objects := map[string]bool{}
	for i, size := range sizes {
		if size > maxFile {
			objects[lacking[i].object] = true
		}
	}
	for _, f := range pointers {
		if !s.clone.mirror.hasLFS(f.content) {
			objects[f.name] = false
		}
	}
	return objects, err
}

// take copies the commit to publish from the shadow into the mirror and checks every object. The caller holds the
// mirror's lock. The commit stays there, because clones borrow it. So does one that was copied to be signed, or Save
// would take it for work that is nowhere else.
func (m mirror) take(ctx context.Context, s *shadow, l load, copied bool) error {
	args := []string{
		"fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--", s.dir,
		"+" + l.tip + ":" + nameNow(publishedRefs, l.tip),
	}
	if copied {
		args = append(args, "+"+l.head+":"+nameNow(originals, l.head))
	}
	err := m.receive(func() error {
		_, err := m.git.run(ctx, args...)
		return err
	})
	if refused, ok := errors.AsType[*gitError](err); ok && strings.Contains(refused.stderr, "object ") {
		return fmt.Errorf("%w: %s", ErrUnfit, refused.line())
	}
	return err
}

// adopt moves the clone to the commit made of its work, so that the work is no longer uncommitted.
func (c clone) adopt(ctx context.Context, head, tip string, trusted bool) error {
	if err := c.secure(); err != nil {
		return err
	}
	move := []string{"update-ref", "--create-reflog", "-m", "published by errand", "HEAD", tip, head}
	if _, err := c.git.run(ctx, move...); err != nil {
		return err
	}
	if err := c.reindex(ctx, tip); err != nil {
		return err
	}
	if trusted {
		if err := c.hide(ctx); err != nil {
			return err
		}
	}
	_, err := c.git.run(ctx, "update-index", "-q", "--refresh")
	if gitFailed(err) {
		return nil // it fails if files have changed meanwhile
	}
	return err
}

// reindex makes the index that of a commit. What a sparse checkout leaves out, or an agent had git ignore, stays so:
// otherwise the next call would publish that these files are gone, or have changed.
func (c clone) reindex(ctx context.Context, commit string) error {
	flags, err := c.git.run(ctx, "ls-files", "-v", "-z") // "H name": without a flag
	if gitFailed(err) || flags == "" {
		return c.git.renewIndex(ctx, commit)
	}
	if err != nil {
		return err
	}
	args := []string{"read-tree", commit} // git compares all contents, also if line ends are converted
	if flagged.MatchString("\x00" + flags) {
		args = []string{"read-tree", "--reset", commit}
	}
	_, err = c.git.run(ctx, args...)
	return err
}

var flagged = regexp.MustCompile(`\x00(S|[a-z]) `)
