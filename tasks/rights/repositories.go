package rights

import (
	"fmt"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/forge"
	"github.com/errand-fleet/errand/tasks"
)

// A task may have further repositories besides its main one. It then gets a clone of each and publishes each by itself.
// Whatever depends on a repository has to hold for all of them: a person, a visitor, a channel or a worker that may not
// deal with one of them may not deal with the task.

// maxFurther is how many repositories a task may have besides the main one.
const maxFurther = 4

// withFurther returns a task whose further repositories have the names that the policy knows, and whose profile is
// limited to what each of them allows. The error is an *InputError.
func (p Policy) withFurther(t tasks.Task) (tasks.Task, error) {
	if len(t.Also) == 0 {
		return t, nil
	}
	bad := func(format string, args ...any) (tasks.Task, error) {
		return t, &tasks.InputError{Sentence: fmt.Sprintf(format, args...)}
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
		if name = p.WithoutHost(name); t.Has(name) {
			return bad("%s is named twice. Name each repository once.", name)
		}
		r, err := p.Allowed(name)
		if err != nil {
			return t, err
		}
		if r.Pool != main.Pool {
			return bad("Workers of pool %s run the tasks of %s, and those of pool %s the tasks of %s. Ask for each "+
				"separately, or have an operator give both the same pool in errand.yaml.",
				tasks.PoolName(main.Pool), t.Repo, tasks.PoolName(r.Pool), name)
		}
		t.Also, t.Profile = append(t.Also, name), r.Narrow(t.Profile)
	}
	return t, nil
}

// Now limits a task to what the policy allows now, which may be less than when it was submitted. A main repository that
// is no longer listed is not trusted; further ones are refused with an *InputError.
func (p Policy) Now(t tasks.Task) (tasks.Task, error) {
	if repo, err := p.Allowed(t.Repo); err == nil {
		t.Profile = repo.Narrow(t.Profile)
	}
	return p.withFurther(t)
}
