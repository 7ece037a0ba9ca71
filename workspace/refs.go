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
	head, err := m.git.run(ctx, "symbolic-ref", "HEAD")
	if err != nil {
		return tip{}, err
	}
	fallback := strings.TrimPrefix(strings.TrimSuffix(head, "\n"), "refs/heads/")
	t := tip{protected: cmp.Or(strings.TrimPrefix(want.Protected, "refs/heads/"), fallback)}
	t.base = cmp.Or(strings.TrimPrefix(want.Base, "refs/heads/"), t.protected)
	names := want.names(fallback)
	patterns := append([]string{"refs/heads/" + t.protected, "refs/heads/" + t.base}, names...)
	if want.Own != "" {
		patterns = append(patterns, "refs/heads/"+want.Own, "refs/heads/**/"+path.Base(want.Own))
	}
	refs, err := m.refs(ctx, patterns...)
	if err != nil {
		return t, err
	}
	protected, err := among(refs, "refs/heads/"+t.protected)
	if err != nil {
		return t, err
	}
	base, err := among(refs, "refs/heads/"+t.base)
	if err != nil {
		return t, err
	}
	t.protectedSHA, t.baseSHA = protected.Commit, base.Commit
	if t.at = own(refs, want.Own); t.at.Commit != "" {
		return t, nil
	}
	if !fullSHA.MatchString(want.Ref) {
		t.at, err = among(refs, names...)
		if err != nil && want.Ref != "" { // said as it was written
			err = fmt.Errorf("%w: %q", ErrRef, want.Ref)
		}
		return t, err
	}
	if t.at.Commit, err = m.commit(ctx, want.Ref); err != nil || want.Strange {
		return t, err
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

// names returns the full names of the refs that Ref may stand for, in the order in which they count.
func (w Want) names(fallback string) []string {
	switch {
	case w.Ref == "":
		return []string{"refs/heads/" + fallback}
	case strings.HasPrefix(w.Ref, "refs/"):
		return []string{w.Ref}
	}
	return []string{"refs/heads/" + w.Ref, "refs/tags/" + w.Ref}
}

// refs lists the refs that patterns match, by their names. What leads to no commit, such as a tag of a file, has none.
func (m mirror) refs(ctx context.Context, patterns ...string) (list []Ref, _ error) {
	const format = "--format=%(objecttype) %(objectname) %(*objecttype) %(*objectname) %(refname)"
	out, err := m.git.run(ctx, append([]string{"for-each-ref", format}, patterns...)...)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(out) {
		// Those of git's fields with a star are empty unless it is an annotated tag. A name may have blanks of Unicode.
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 5)
		ref, object := Ref{Name: fields[4]}, cmp.Or(fields[3], fields[1])
		switch cmp.Or(fields[2], fields[0]) {
		case "commit":
			ref.Commit = object
		case "tag": // some versions of git follow only the first of several
			if ref.Commit, err = m.commit(ctx, object); err != nil && !errors.Is(err, ErrRef) {
				return nil, err
			}
		}
		list = append(list, ref)
	}
	return list, nil
}

// among returns the first of the names that a ref with a commit has.
func among(refs []Ref, names ...string) (Ref, error) {
	for _, name := range names {
		for _, r := range refs {
			if r.Name == name && r.Commit != "" {
				return r, nil
			}
		}
	}
	return Ref{}, fmt.Errorf("%w: %q", ErrRef, strings.TrimPrefix(names[0], "refs/heads/"))
}

// own returns the branch with a name or, if none exists, one with the same last part that Publish may push to. It
// returns the zero Ref if there is neither.
func own(refs []Ref, name string) (own Ref) {
	for _, r := range refs {
		branch := r.branch()
		if branch == "" || path.Base(branch) != path.Base(name) {
			continue
		}
		if branch == name || own.Name == "" && publishable.MatchString(branch) {
			own = r
		}
	}
	return own
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

// isStray reports whether no branch and no tag of the remote has a commit in its history. Such a commit is in the
// mirror because of a pull request, or because the host serves the commits of forks by their IDs.
func (m mirror) isStray(ctx context.Context, commit string) (bool, error) {
	out, err := m.git.run(ctx, "rev-list", "--max-count=1", commit, "--not", "--branches", "--tags")
	return out != "", err
}
