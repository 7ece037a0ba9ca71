package rights

import (
	"context"
	"errors"
	"fmt"

	"github.com/errand-fleet/errand/forge"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/policy"
)

// Reasons why a run may not have the files of a submodule, as clauses for people.
const (
	notListed = "their repositories are private, and not among those that errand works on"
	notTheirs = "their repositories are private, and the one who asked may not read them, or others could see the " +
		"answer"
)

// PermitSubmodule reports whether the run of a task may have the files of a submodule from another repository. why says
// why it may not, as a clause for people. Everybody may have what is public. What is private needs what a task in both
// repositories would, so that no answer shows it to others; and the asker must be able to read it, or, where nobody is
// known to have asked, the operator must have listed it.
func (p Policy) PermitSubmodule(
	ctx context.Context, s *store.Store, t tasks.Task, repo string,
) (private bool, why string, err error) {
	_, unlisted := p.Allowed(repo)
	if !p.limits() {
		if unlisted != nil {
			why = notListed
		}
		return true, why, nil
	}
	private, err = p.Rights.Forge.Private(ctx, repo)
	if err != nil && !errors.Is(err, forge.ErrNotFound) {
		return true, "", fmt.Errorf("check whether %s is private: %w", repo, tasks.FromForge(err))
	}
	if err == nil && !private {
		return false, "", nil
	}
	both := t
	both.Also = append([]string{repo}, t.Also...)
	_, err = p.decide(ctx, s, policy.Work, both, policy.Object{Public: true, Channel: p.inChannel(t)})
	if _, refused := errors.AsType[*tasks.InputError](err); refused {
		return true, notTheirs, nil
	} else if err != nil {
		return true, "", err
	}
	by, err := p.identify(ctx, s, t.AskedBy())
	if err != nil {
		return true, "", err
	}
	if unasked(t) || by.Login == "" {
		if unlisted != nil {
			why = notListed
		}
		return true, why, nil
	}
	r, err := p.repo(ctx, by, repo) // decide leaves it to the briefs of requests on the forge
	if _, refused := errors.AsType[*tasks.InputError](err); err != nil && !refused {
		return true, "", err
	}
	if !r.Reads && !r.Writes && !r.Open {
		why = notTheirs
	}
	return true, why, nil
}
