package workspace

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
)

const (
	// maxSinceCommits bounds the commits on either side for a comparison commit by commit: git compares each with
	// each.
	maxSinceCommits = 60
	// maxSincePaths bounds the bytes of names by which a comparison is limited to the files of the change. They are in
	// git's command line.
	maxSincePaths = 100 << 10
)

// Since is the difference between a change and an earlier state of it.
type Since struct {
	Text      string // empty if nothing has changed
	Rewritten bool   // the earlier state is no longer an ancestor
	Truncated bool   // after a whole line
}

// Since compares c.Head with an earlier head of the same change, in at most limit bytes. The result is a patch of the
// change's files only, so that most changes of the base are left out. After a rewrite of few commits it starts with
// the output of git range-diff, in at most half of the limit. The earlier head is fetched if necessary; ErrRef means
// that it no longer exists. Git runs in the mirror.
func (w *Workspace) Since(ctx context.Context, c Clone, earlier string, limit int) (_ Since, err error) {
	defer wrap(&err, "compare %s with an earlier head", c.Repo)
	if _, err := c.span(); err != nil {
		return Since{}, err
	}
	if !fullSHA.MatchString(earlier) {
		return Since{}, errors.New("the earlier head is not a full SHA")
	}
	m := w.mirror(c.Repo)
	want := Want{Repo: c.Repo, Ref: earlier, Base: c.Base, Protected: c.Protected, Strange: true}
	if _, err := m.sync(ctx, want); err != nil {
		return Since{}, err
	}
	g := m.git.configured(readable).having("GIT_LITERAL_PATHSPECS=1")
	builds, err := g.contains(ctx, c.Head, earlier)
	if err != nil {
		return Since{}, err
	}
	s := Since{Rewritten: !builds}
	if s.Rewritten {
		if s.Text, s.Truncated, err = g.ranges(ctx, c, earlier, limit/2); err != nil {
			return Since{}, err
		}
	}
	patch, cut, err := g.patch(ctx, c, earlier, limit-len(s.Text))
	if err != nil {
		return Since{}, err
	}
	s.Text, s.Truncated = strings.ToValidUTF8(s.Text+patch, "\uFFFD"), s.Truncated || cut
	return s, nil
}

// ranges compares commit by commit, unless one side has too many commits or none.
func (g git) ranges(ctx context.Context, c Clone, earlier string, limit int) (text string, truncated bool, err error) {
	args := []string{"range-diff", "--no-color", "--no-ext-diff", "--no-textconv"}
	for _, head := range []string{earlier, c.Head} {
		span := c.BaseSHA + ".." + head
		out, err := g.run(ctx, "rev-list", "--count", "--no-merges", span)
		if err != nil {
			return "", false, err
		}
		if n, err := strconv.Atoi(strings.TrimSpace(out)); err != nil || n == 0 || n > maxSinceCommits {
			return "", false, nil //nolint:nilerr // treat an invalid number as too many
		}
		args = append(args, span)
	}
	return g.lines(ctx, limit, args...)
}

// patch compares the two heads in the files of either change.
func (g git) patch(ctx context.Context, c Clone, earlier string, limit int) (text string, truncated bool, err error) {
	var paths []string
	for _, head := range []string{earlier, c.Head} {
		out, err := g.run(ctx, "diff", "--name-only", "--no-renames", "-z", c.BaseSHA+"..."+head, "--")
		if err != nil {
			return "", false, err
		}
		paths = append(paths, strings.FieldsFunc(out, func(r rune) bool { return r == 0 })...)
	}
	slices.Sort(paths)
	paths = slices.Compact(paths)
	if len(paths) == 0 {
		return "", false, nil
	}
	if len(strings.Join(paths, " ")) > maxSincePaths {
		paths = nil
	}
	return g.lines(ctx, limit, append(diff("--find-renames", earlier, c.Head, "--"), paths...)...)
}

// lines runs git and returns at most limit bytes of its output, in whole lines.
func (g git) lines(ctx context.Context, limit int, args ...string) (text string, truncated bool, err error) {
	g.limit = limit
	text, err = g.run(ctx, args...)
	if errors.Is(err, errLong) {
		return text[:strings.LastIndexByte(text, '\n')+1], true, nil
	}
	return text, false, err
}

// Diff returns what c.Head changed since it left c.Base, as a patch of at most limit bytes, cut after a whole line.
// Nothing in the clone can hide a change, show another one, or execute anything. All is cut if only the clone has
// c.Head, and it has too many objects.
func (w *Workspace) Diff(ctx context.Context, c Clone, limit int) (text string, truncated bool, err error) {
	defer wrap(&err, "diff %s", c.Repo)
	g, span, release, err := w.span(ctx, c)
	if errors.Is(err, errLong) {
		return "", true, nil
	}
	if err != nil {
		return "", false, err
	}
	defer release()
	text, truncated, err = g.configured(readable).lines(ctx, limit, diff("--find-renames", span, "--")...)
	return strings.ToValidUTF8(text, "\uFFFD"), truncated, err
}

// readable makes git treat larger files as binary: their diff is not readable, and it takes memory.
const readable = "core.bigFileThreshold=8m"

// span returns the range of the commits that c.Head has and c.Base lacks, and a git that has them until release is
// called. It runs in the mirror if that has c.Head, whatever has become of the clone.
func (w *Workspace) span(ctx context.Context, c Clone) (g git, span string, release func(), err error) {
	if span, err = c.span(); err != nil {
		return git{}, "", nil, err
	}
	m := w.mirror(c.Repo)
	if _, err := m.commit(ctx, c.Head); !errors.Is(err, ErrRef) {
		return m.git, span, func() {}, err
	}
	s, err := w.shadow(ctx, c, latest)
	if err != nil {
		return git{}, "", nil, err
	}
	return s.git, span, s.remove, nil
}

// span checks c and returns the range of the commits that c.Head has and c.Base lacks.
func (c Clone) span() (string, error) {
	if !fullSHA.MatchString(c.BaseSHA) || !fullSHA.MatchString(c.Head) {
		return "", errors.New("base or head is not a full SHA")
	}
	return c.BaseSHA + "..." + c.Head, checkRepo(c.Repo)
}
