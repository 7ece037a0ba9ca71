package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/errand-fleet/errand/internal/refname"
)

// Errors of Publish that callers can distinguish, in addition to ErrNotFound and ErrAuth. The work stays in the clone
// after every error.
var (
	// ErrUnfit means that the clone holds something that cannot be published. The error names it, so that it can be
	// corrected.
	ErrUnfit = errors.New("the work is not fit to be published")
	// ErrForeign means that the branch has someone else's commits, which the work does not contain.
	ErrForeign = errors.New("the branch has commits by others")
	// ErrRejected means that the remote refused the push. The error contains the remote's reason.
	ErrRejected = errors.New("the remote refused the push")
)

// Publication describes how the work in a clone becomes a branch of the remote.
type Publication struct {
	Branch string // such as "errand/slack-0123456789"
	// Message is the message of the commit of uncommitted work. Its author is Author.
	Message string
	// Author is errand's name and address in commits, such as "bot <bot@example.com>"; empty: Unknown.
	Author string
	// Asker is the only other author that the signed copy of a commit may have, in the same form; empty: there is none.
	Asker string
	// Credit returns the message for the signed copy of a commit; nil: the message stays.
	Credit func(message string) string
	// TrustedConfig is the value of Want. If it is set, configuration that replaced the commit's own is not published.
	TrustedConfig bool
	// Ours are the commits that errand may have pushed to Branch. Only these may be replaced by commits that do not
	// contain them.
	Ours []string
	// Permit is called with the commit right before the push. If it returns an error, Publish does not push and
	// returns that error.
	Permit func(ctx context.Context, commit string) error
	// Refuse returns why a text must not be pushed, or "". It gets the messages and patches of the new commits, also
	// without the marks of their lines, before Permit is called. nil: everything may be pushed.
	Refuse func(text string) string
}

// Pushed describes the remote's branch after Publish.
type Pushed struct {
	Commit  string // our latest on the branch, perhaps not its head; empty: nothing to publish
	Subject string // of the first commit that errand has not pushed before, or else of the branch's first, in one line
	New     bool   // pushed by this call: the branch did not have all of the work before
}

// publishable has a slash, so that it matches no branch like main.
var publishable = regexp.MustCompile(`^([a-z0-9][a-z0-9._-]*/)+[a-z0-9][a-z0-9.-]{0,99}$`)

// Publish pushes the commit that is checked out in c, plus a commit of the uncommitted work, to a branch of the
// remote. The clone then has that commit too. There is nothing to publish if the remote has all of it on another
// branch. Files that an agent had git ignore, also by flags of the index, are not published.
//
// Publish is all or nothing: it fails on a file that is too large or not a regular file, an unfinished merge, or an
// object that git would not create. It can be repeated: commits that are already there are not pushed again.
func (w *Workspace) Publish(ctx context.Context, c Clone, p Publication) (_ Pushed, err error) {
	defer wrap(&err, "publish %s", c.Repo)
	if !publishable.MatchString(p.Branch) || !refname.Branch(p.Branch) {
		return Pushed{}, fmt.Errorf("%w: %.100q is no branch for it", ErrUnfit, p.Branch)
	}
	s, err := w.shadow(ctx, c, latest)
	if err != nil {
		return Pushed{}, err
	}
	defer s.remove()
	s.flags = true
	work, err := s.work(ctx, p.TrustedConfig)
	if err != nil || work.known && len(p.Ours) == 0 { // no need to contact the remote
		return Pushed{}, err
	}
	l, err := load{mirror: s.clone.mirror, head: s.head, signer: w.cfg.Signer}.prepare(ctx, s, work, c.Base, p)
	if err != nil {
		return Pushed{}, err
	}
	pushed, err := l.deliver(ctx, p)
	if err == nil && pushed.Commit == l.tip && l.tip != l.head {
		if err := s.clone.adopt(ctx, l.head, l.tip, p.TrustedConfig); err != nil {
			// The next call publishes from the clone's present commit, which works as well.
			w.log.WarnContext(ctx, "clone stays behind what was published", "dir", c.Dir, "err", err)
		}
	}
	return pushed, err
}

// load is work that was copied into the mirror, and the state of the remote at that time.
type load struct {
	mirror    mirror
	remote    remote
	head, tip string // of the clone; tip includes uncommitted work, and is signed
	base      string // of the remote; both may be empty
	branch    string
	signer    *Signer // nil: nothing is signed
}

// prepare updates the mirror and copies the work into it, checking every object.
func (l load) prepare(ctx context.Context, s *shadow, work work, base string, p Publication) (_ load, err error) {
	held, err := lock(ctx, l.mirror.beside("lock"))
	if err != nil {
		return l, err
	}
	defer unlock(held)
	m := l.mirror
	m.git = m.git.holding(held)
	if l.remote, err = m.update(ctx); err != nil {
		return l, err
	}
	refs, err := m.refs(ctx, "refs/heads/"+base, "refs/heads/"+p.Branch)
	if err != nil {
		return l, err
	}
	onto, err := among(refs, "refs/heads/"+base)
	if err != nil {
		return l, err
	}
	there, _ := among(refs, "refs/heads/"+p.Branch) // it may be new
	l.base, l.branch = onto.Commit, there.Commit
	signing, err := l.signing(ctx, s, p)
	if err != nil {
		return l, err
	}
	if work.head, err = signing.sign(ctx, l.head); err != nil {
		return l, err
	}
	parent, err := l.parent(ctx, s, work.head, p.Ours)
	if err != nil {
		return l, err
	}
	sealed, err := s.seal(ctx, work, parent, p)
	if err != nil {
		return l, err
	}
	if l.tip, err = signing.sign(ctx, sealed); err != nil {
		return l, err
	}
	return l, m.take(ctx, s, l, work.head != l.head)
}

// parent returns the commit that the uncommitted work is based on: the head of the committed work, or the branch if an
// earlier call has pushed that there.
func (l load) parent(ctx context.Context, s *shadow, head string, ours []string) (string, error) {
	if !slices.Contains(ours, l.branch) {
		return head, nil
	}
	pushed, err := s.git.contains(ctx, l.branch, head)
	if err != nil {
		return "", err
	}
	if pushed {
		return l.branch, nil
	}
	return head, nil
}

// deliver pushes the work unless the remote has all of it.
func (l load) deliver(ctx context.Context, p Publication) (Pushed, error) {
	there := false // the branch has all of the work
	if l.branch != "" {
		var err error
		if there, err = l.mirror.git.contains(ctx, l.branch, l.tip); err != nil {
			return Pushed{}, err
		}
	}
	elsewhere := []string{"--exclude=" + p.Branch, "--branches", "--tags"}
	if !there { // otherwise it is in our own pull request
		elsewhere = append(elsewhere, "--glob=refs/pull/*")
	}
	m := l.mirror
	beyond, err := m.git.run(ctx, append([]string{"rev-list", "--max-count=1", l.tip, "--not"}, elsewhere...)...)
	if err != nil || beyond == "" {
		return Pushed{}, err
	}
	ours := slices.Contains(p.Ours, l.branch)
	pushed := Pushed{Commit: l.tip}
	if there && ours {
		pushed.Commit = l.branch
	}
	// What was pushed before may be in a pull request that was merged as one commit, and another one must not have its
	// title.
	news := []string{"log", "--reverse", "--no-merges", "--format=%s", l.base + ".." + pushed.Commit}
	for _, without := range [][]string{append([]string{"--ignore-missing", "--not"}, p.Ours...), nil} {
		subjects, err := m.git.run(ctx, append(slices.Clip(news), without...)...)
		if err != nil {
			return Pushed{}, err
		}
		pushed.Subject, _, _ = strings.Cut(strings.ToValidUTF8(subjects, "\uFFFD"), "\n")
		if pushed.Subject != "" {
			break
		}
	}
	if there {
		return pushed, nil
	}
	if l.branch != "" && !ours {
		builds, err := m.git.contains(ctx, l.tip, l.branch)
		if err != nil {
			return Pushed{}, err
		}
		if !builds {
			return Pushed{}, fmt.Errorf("%w: %s is at %.7s", ErrForeign, p.Branch, l.branch)
		}
	}
	if err := l.search(ctx, p, elsewhere); err != nil {
		return Pushed{}, err
	}
	if err := p.Permit(ctx, l.tip); err != nil {
		return Pushed{}, err
	}
	pushed.New = true
	return pushed, m.push(ctx, l.remote, l.tip, p.Branch, l.branch)
}

// search lets p.Refuse see everything that the remote does not have elsewhere, with what a later commit takes away.
func (l load) search(ctx context.Context, p Publication, elsewhere []string) error {
	if p.Refuse == nil {
		return nil
	}
	args := []string{
		// Otherwise git converts messages from the encoding that a commit claims.
		"log", "--encoding=none", "--format=raw", "--patch", "--cc", "--text",
		"--no-renames", "--no-textconv", "--no-ext-diff", l.tip, "--not",
	}
	text, err := l.mirror.git.run(ctx, append(args, elsewhere...)...)
	if errors.Is(err, errLong) {
		return fmt.Errorf("%w: it is too large to be searched for secrets", ErrUnfit)
	}
	if err != nil {
		return err
	}
	if why := cmp.Or(p.Refuse(text), p.Refuse(unmarked(text))); why != "" {
		return fmt.Errorf("%w: %s", ErrUnfit, why)
	}
	return nil
}

// unmarked returns the messages and the new lines of a log with patches, without the marks and spaces before them, so
// that a text of several lines is found.
func unmarked(log string) string {
	var b strings.Builder
	marks := 0 // before each line
	for line := range strings.Lines(log) {
		switch {
		case strings.HasPrefix(line, "commit "):
			marks = 4 // before the lines of its message
		case strings.HasPrefix(line, "diff --"):
			marks = 0
		case strings.HasPrefix(line, "@@"): // one more than there are parents
			marks = len(line) - len(strings.TrimLeft(line, "@")) - 1
			continue
		}
		n := min(marks, len(line))
		if !strings.Contains(line[:n], "-") {
			b.WriteString(line[n:])
		}
	}
	return b.String()
}

// contains reports whether a commit equals another one or has it as an ancestor.
func (g git) contains(ctx context.Context, commit, ancestor string) (bool, error) {
	return g.holds(ctx, "merge-base", "--is-ancestor", ancestor, commit)
}
