package tasks

import (
	"fmt"
	"slices"
	"strings"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/forge"
)

// A task may have further repositories besides its main one. It then gets a clone of each and publishes each by itself.
// Whatever depends on a repository has to hold for all of them: a person, a visitor, a channel or a worker that may not
// deal with one of them may not deal with the task.

// maxFurther is how many repositories a task may have besides the main one.
const maxFurther = 4

// Repositories returns all repositories of a task, the main one first; nil if it has none.
func (t Task) Repositories() []string {
	if t.Repo == "" {
		return nil
	}
	return t.Places()
}

// Places returns the repositories of a task like Repositories, and "" for work without one.
func (t Task) Places() []string { return append([]string{t.Repo}, t.Also...) }

// Has reports whether a repository is one of the task's; "" is that of a task without one.
func (t Task) Has(repo string) bool {
	return strings.EqualFold(repo, t.Repo) || slices.ContainsFunc(t.Also, func(one string) bool {
		return strings.EqualFold(one, repo)
	})
}

// SplitRepositories reads repositories that a person wrote as a list: the main one and the further ones, with commas
// between them.
func SplitRepositories(list string) (repo string, also []string) {
	for i, name := range strings.Split(list, ",") {
		if name = strings.TrimSpace(name); i == 0 {
			repo = name
		} else if name != "" {
			also = append(also, name)
		}
	}
	return repo, also
}

// withFurther returns a task whose further repositories have the names that the policy knows, and whose profile is
// limited to what each of them allows. The error is an *InputError.
func (p Policy) withFurther(t Task) (Task, error) {
	if len(t.Also) == 0 {
		return t, nil
	}
	bad := func(format string, args ...any) (Task, error) {
		return t, &InputError{Sentence: fmt.Sprintf(format, args...)}
	}
	switch {
	case t.Repo == "":
		return bad("Further repositories need a main one: name it, too.")
	case t.Profile == agent.Untrusted:
		return bad("Work on untrusted content has only its own repository. Name no other.")
	case len(t.Also) > maxFurther:
		return bad("A task works in at most %d repositories. Ask for the others separately.", 1+maxFurther)
	}
	main, err := p.Allowed(t.Repo)
	if err != nil {
		return t, err
	}
	also := t.Also
	t.Also = nil
	for _, name := range also {
		if _, err := forge.ParseRepository(name); err != nil {
			return bad("%q is not a repository: write it as owner/name.", name)
		}
		if name = p.withoutHost(name); t.Has(name) {
			return bad("%s is named twice. Name each repository once.", name)
		}
		r, err := p.Allowed(name)
		if err != nil {
			return t, err
		}
		if r.Pool != main.Pool {
			return bad("Workers of pool %s run the tasks of %s, and those of pool %s the tasks of %s. Ask for each "+
				"separately, or have an operator give both the same pool in errand.yaml.",
				PoolName(main.Pool), t.Repo, PoolName(r.Pool), name)
		}
		t.Also, t.Profile = append(t.Also, name), r.Narrow(t.Profile)
	}
	return t, nil
}

// Now limits a task to what the policy allows now, which may be less than when it was submitted. A main repository that
// is no longer listed is not trusted; further ones are refused with an *InputError.
func (p Policy) Now(t Task) (Task, error) {
	if repo, err := p.Allowed(t.Repo); err == nil {
		t.Profile = repo.Narrow(t.Profile)
	}
	return p.withFurther(t)
}

// Publications returns the published works of an ending, not copies of them. The main repository's comes first.
func (e *Ending) Publications() []*Published {
	if e.Published == nil {
		return nil
	}
	return append([]*Published{e.Published}, e.Also...)
}

// PullRequests returns the publications of an ending that have a pull request.
func (e *Ending) PullRequests() []*Published {
	return slices.DeleteFunc(e.Publications(), func(p *Published) bool { return p.PullRequest.Number == 0 })
}

// Beside returns the pull requests that were published together with one, as "owner/name#3".
func (e *Ending) Beside(p *Published) (list []string) {
	for _, other := range e.PullRequests() {
		if other != p {
			list = append(list, other.Name())
		}
	}
	return list
}

// Name returns the pull request as "owner/name#3".
func (p *Published) Name() string { return fmt.Sprintf("%s#%d", p.Repo, p.PullRequest.Number) }
