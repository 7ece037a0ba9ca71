package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
)

// A name is looked up only as the ref that it claims to be, and an ID only if it is a full one. Git itself reads more
// into a name that no ref has: an abbreviated ID at its end (x-0-g1234567), another directory of refs, an expression.
// So a name never goes to rev-parse.

// Ref is what a [Want] named, as the mirror had it. What a run may do follows from it, never from the spelling of the
// name.
type Ref struct {
	// Name is the full name of a ref, such as "refs/heads/main" or "refs/pull/7/head". It is empty if a commit was
	// named by its ID, which does not tell who pushed it: forks share their objects with the repository.
	Name   string `json:"name,omitempty"`
	Commit string `json:"commit,omitempty"` // full SHA
}

// IsCommit reports whether a commit was named by its ID, and not by a branch, a tag or a pull request.
func (r Ref) IsCommit() bool { return r.Commit != "" && r.Name == "" }

// branch returns the name of the branch, or "" if the ref is none.
func (r Ref) branch() string {
	name, found := strings.CutPrefix(r.Name, "refs/heads/")
	if !found {
		return ""
	}
	return name
}

// resolve finds what want names in the mirror, without fetching.
func (m mirror) resolve(ctx context.Context, want Want) (tip, error) {
	name, err := m.git.run(ctx, "symbolic-ref", "HEAD")
	if err != nil {
		return tip{}, err
	}
	fallback := strings.TrimPrefix(strings.TrimSpace(name), "refs/heads/")
	t := tip{protected: cmp.Or(strings.TrimPrefix(want.Protected, "refs/heads/"), fallback)}
	protected, err := m.ref(ctx, "refs/heads/"+t.protected)
	if err != nil {
		return t, err
	}
	t.base = cmp.Or(strings.TrimPrefix(want.Base, "refs/heads/"), t.protected)
	base, err := m.ref(ctx, "refs/heads/"+t.base)
	if err != nil {
		return t, err
	}
	t.protectedSHA, t.baseSHA = protected.Commit, base.Commit
	if want.Own != "" {
		if t.at, err = m.own(ctx, want.Own); err != nil || t.at.Commit != "" {
			return t, err
		}
	}
	if t.at, err = m.named(ctx, want.Ref, fallback); err != nil || !t.at.IsCommit() {
		return t, err
	}
	if want.Strange {
		return t, nil
	}
	if t.stray, err = m.isStray(ctx, t.at.Commit); err != nil {
		return t, err
	}
	if t.stray && want.Runs {
		return t, fmt.Errorf("%w: commit %s is on no branch and no tag, so it may be from a fork; name a branch, "+
			"a tag or a pull request", ErrRef, t.at.Commit)
	}
	return t, nil
}

// named finds what a Want.Ref names.
func (m mirror) named(ctx context.Context, name, fallback string) (Ref, error) {
	if fullSHA.MatchString(name) {
		commit, err := m.commit(ctx, name)
		return Ref{Commit: commit}, err
	}
	names := []string{"refs/heads/" + name, "refs/tags/" + name}
	if name == "" {
		names = []string{"refs/heads/" + fallback}
	}
	if strings.HasPrefix(name, "refs/") {
		names = []string{name}
	}
	for _, full := range names {
		if found, err := m.ref(ctx, full); !errors.Is(err, ErrRef) {
			return found, err
		}
	}
	return Ref{}, fmt.Errorf("%w: %q", ErrRef, name)
}

// ref finds the ref with a full name and the commit that it leads to.
func (m mirror) ref(ctx context.Context, name string) (Ref, error) {
	// The pattern also matches the refs below a directory of that name.
	out, err := m.git.run(ctx, "for-each-ref", "--format=%(objectname) %(refname)", name)
	if err != nil {
		return Ref{}, err
	}
	for line := range strings.Lines(out) {
		object, found, _ := strings.Cut(strings.TrimSpace(line), " ")
		if found == name {
			commit, err := m.commit(ctx, object)
			return Ref{Name: name, Commit: commit}, err
		}
	}
	return Ref{}, fmt.Errorf("%w: %q", ErrRef, strings.TrimPrefix(name, "refs/heads/"))
}

// commit returns the commit with an ID, or the one that the tag with an ID leads to. A tag may also lead to a tree or a
// file, and then there is no commit.
func (m mirror) commit(ctx context.Context, id string) (string, error) {
	if !fullSHA.MatchString(id) {
		return "", fmt.Errorf("%w: %.100q", ErrRef, id)
	}
	out, err := m.git.run(ctx, "rev-parse", "--quiet", "--verify", id+"^{commit}")
	var ge *gitError
	unknown := errors.As(err, &ge) && ge.stderr == "" // --quiet fails this way
	if unknown || ge != nil && strings.Contains(ge.stderr, "expected commit type") {
		return "", fmt.Errorf("%w: %q", ErrRef, id)
	}
	return strings.TrimSpace(out), err
}

// own returns the branch with a name or, if none exists, one with the same last part that Publish may push to. It
// returns the zero Ref if there is neither.
func (m mirror) own(ctx context.Context, name string) (own Ref, err error) {
	out, err := m.git.run(ctx, "for-each-ref", "--format=%(objectname) %(refname)", "refs/heads/"+name,
		"refs/heads/**/"+path.Base(name))
	for line := range strings.Lines(out) {
		sha, full, _ := strings.Cut(strings.TrimSpace(line), " ")
		found := Ref{Name: full, Commit: sha}
		if own.Name == "" && publishable.MatchString(found.branch()) || found.branch() == name {
			own = found
		}
	}
	return own, err
}

// isStray reports whether no branch and no tag of the remote has a commit in its history. Such a commit is in the
// mirror because of a pull request, or because the host serves the commits of forks by their IDs.
func (m mirror) isStray(ctx context.Context, commit string) (bool, error) {
	out, err := m.git.run(ctx, "rev-list", "--max-count=1", commit, "--not", "--branches", "--tags")
	return out != "", err
}
