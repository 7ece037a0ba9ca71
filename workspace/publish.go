package workspace

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

// What a caller of Publish can tell apart, besides ErrNotFound and ErrAuth. The work is kept in the clone whatever the
// error is.
var (
	// ErrUnfit: the clone holds what is not published; the error says what, so that somebody can change it.
	ErrUnfit = errors.New("the work is not fit to be published")
	// ErrForeign: there are commits of somebody else on the branch, which the work does not contain.
	ErrForeign = errors.New("the branch has commits of somebody else")
	// ErrRejected: the remote did not take the push; the error says why, in the remote's words.
	ErrRejected = errors.New("the remote refused the push")
)

// Publication says how the work in a clone becomes a branch of the remote.
type Publication struct {
	Branch string // "errand/…"
	// Message is that of the commit that what is not committed becomes. Its author is errand.
	Message string
	// TrustedConfig is as it was in Want: then nothing that was put in place of the commit's own is published.
	TrustedConfig bool
	// Ours are the commits that Branch may be at by our doing. Only those are ever replaced by what does not contain
	// them.
	Ours []string
	// Permit is asked with the commit, right before it is pushed; with its error, which is returned, it is not.
	Permit func(ctx context.Context, commit string) error
}

// Pushed is what a branch of the remote was made to be.
type Pushed struct {
	Commit  string // the latest of ours on the branch, of others there may be later ones; empty: there is nothing to publish
	Subject string // of the branch's first commit, in one line
	New     bool   // pushed by this call: before, the branch had not all of the work
}

var publishable = regexp.MustCompile(`^errand/[a-z0-9][a-z0-9.-]{0,99}$`)

// Publish pushes what is checked out in c, and as a commit on top of it what is not committed, to a branch of the
// remote. The commit then is in the clone as well. There is nothing to publish where the remote has all of it on
// another branch.
//
// It is all or nothing: a file that is too large or is none, a merge that is not done, or an object that git would not
// make is an error. Calling it again does no harm: what is there already is not pushed again.
func (w *Workspace) Publish(ctx context.Context, c Clone, p Publication) (Pushed, error) {
	pushed, err := w.publish(ctx, c, p)
	if err != nil {
		return Pushed{}, fmt.Errorf("publish %s: %w", c.Repo, err)
	}
	return pushed, nil
}

func (w *Workspace) publish(ctx context.Context, c Clone, p Publication) (Pushed, error) {
	if !publishable.MatchString(p.Branch) || notInRef.MatchString(p.Branch) {
		return Pushed{}, fmt.Errorf("%w: %.100q is no branch for it", ErrUnfit, p.Branch)
	}
	own, release, err := w.reach(ctx, c)
	if err != nil {
		return Pushed{}, err
	}
	defer release()
	s, err := newShadow(ctx, own, latest)
	if err != nil {
		return Pushed{}, err
	}
	defer s.remove()
	work, err := s.work(ctx, p.TrustedConfig)
	if err != nil || work.known && len(p.Ours) == 0 { // the remote need not be asked
		return Pushed{}, err
	}
	l, err := load{mirror: own.mirror, head: work.head}.prepare(ctx, s, work, c.Base, p)
	if err != nil {
		return Pushed{}, err
	}
	pushed, err := l.deliver(ctx, p)
	if err == nil && pushed.Commit == l.tip && l.tip != l.head {
		if err := own.adopt(ctx, l.head, l.tip, p.TrustedConfig); err != nil {
			// It will be published again from where the clone stands, which is as good.
			w.log.WarnContext(ctx, "clone stays behind what was published", "dir", c.Dir, "err", err)
		}
	}
	return pushed, err
}

// load is work that was taken into the mirror, and the remote as it was then.
type load struct {
	mirror    mirror
	remote    remote
	head, tip string // of the clone; with what was not committed
	base      string // of the remote; both may be empty
	branch    string
}

// prepare updates the mirror and copies the work into it, with every object checked.
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
	if l.base, err = m.commit(ctx, "refs/heads/"+base); err != nil {
		return l, err
	}
	if l.branch, err = m.commit(ctx, "refs/heads/"+p.Branch); err != nil && !errors.Is(err, ErrRef) {
		return l, err
	}
	parent := l.head
	if slices.Contains(p.Ours, l.branch) {
		behind, err := s.git.contains(ctx, l.branch, l.head)
		if err != nil {
			return l, err
		}
		if behind {
			parent = l.branch // an earlier call got as far as the push
		}
	}
	if l.tip, err = s.seal(ctx, work, parent, p.Message); err != nil {
		return l, err
	}
	return l, m.take(ctx, s, l.tip, p.Branch)
}

// deliver pushes the work, if the remote lacks any of it.
func (l load) deliver(ctx context.Context, p Publication) (_ Pushed, err error) {
	m := l.mirror
	elsewhere := []string{"--exclude=" + p.Branch, "--branches", "--tags"}
	var there, builds bool // the branch has all of the work; the work has all of the branch
	if l.branch != "" {
		there, err = m.git.contains(ctx, l.branch, l.tip)
		if err == nil {
			builds, err = m.git.contains(ctx, l.tip, l.branch)
		}
		if err != nil {
			return Pushed{}, err
		}
	}
	if !there { // else it is in our own pull request
		elsewhere = append(elsewhere, "--glob=refs/pull/*")
	}
	beyond, err := m.git.run(ctx, append([]string{"rev-list", "--max-count=1", l.tip, "--not"}, elsewhere...)...)
	if err != nil || beyond == "" {
		return Pushed{}, err
	}
	pushed := Pushed{Commit: l.tip}
	if there && slices.Contains(p.Ours, l.branch) {
		pushed.Commit = l.branch
	}
	subjects, err := m.git.run(ctx, "log", "--reverse", "--no-merges", "--format=%s", l.base+".."+pushed.Commit)
	if err != nil {
		return Pushed{}, err
	}
	pushed.Subject, _, _ = strings.Cut(strings.ToValidUTF8(subjects, "\uFFFD"), "\n")
	if there {
		return pushed, nil
	}
	if l.branch != "" && !builds && !slices.Contains(p.Ours, l.branch) {
		return Pushed{}, fmt.Errorf("%w: %s is at %.7s", ErrForeign, p.Branch, l.branch)
	}
	if err := p.Permit(ctx, l.tip); err != nil {
		return Pushed{}, err
	}
	pushed.New = true
	return pushed, m.push(ctx, l.remote, l.tip, p.Branch, l.branch)
}

// contains reports whether a commit has the other one among its ancestors, or is it.
func (g git) contains(ctx context.Context, commit, ancestor string) (bool, error) {
	_, err := g.run(ctx, "merge-base", "--is-ancestor", ancestor, commit)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 1 {
		return false, nil
	}
	return err == nil, err
}
