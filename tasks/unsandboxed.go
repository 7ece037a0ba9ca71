package tasks

import (
	"context"
	"errors"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
)

// Unsandboxed returns the profile with which a task may run on a worker that has no sandbox. Commands can read there
// whatever the worker's user can: the repositories of other tasks, and their logs. So the profile write is only for
// askers without limits, and for those who may read every repository in Policy.Listed. Others get the profile read,
// whose tools do not leave the run's directories. After an error nothing is known, so the task must not run.
//
// The code of a repository also runs for people who are not limited, in tests and set-ups. Who may push to it can
// therefore reach the machine in a way that this does not prevent.
func (p Policy) Unsandboxed(ctx context.Context, s *store.Store, t Task) (agent.Profile, error) {
	if t.Profile != agent.Write || t.unasked() {
		return t.Profile, nil
	}
	by, limited, err := p.limits(ctx, s, t.askedBy())
	if err != nil {
		return "", err
	}
	all, err := p.readsAll(ctx, by, limited)
	if err != nil {
		return "", err
	}
	if !all {
		return agent.Read, nil
	}
	return t.Profile, nil
}

// readsAll reports whether a person, as limits returns them, may read everything that errand works on. A repository
// that the forge does not know counts as one that they may not read: a copy may still be on the worker's disk.
func (p Policy) readsAll(ctx context.Context, by Asker, limited bool) (bool, error) {
	if !limited {
		return !by.Partial, nil
	}
	if by.Login == "" || len(p.Listed) == 0 {
		return false, nil
	}
	for _, repo := range p.Listed {
		_, err := p.entitle(ctx, by, repo, agent.Read)
		if _, refused := errors.AsType[*InputError](err); refused {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	return true, nil
}
