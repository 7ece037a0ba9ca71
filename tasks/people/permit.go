package people

import (
	"context"
	"fmt"
	"strings"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/internal/format"
	"github.com/errand-fleet/errand/tasks/internal/scope"
	"github.com/errand-fleet/errand/tasks/policy"
)

// Permit checks that the visitor may do something with a task. It returns ErrNotFound for a task that they do not see.
func (p People) Permit(ctx context.Context, t tasks.Task, a policy.Action) error {
	v := VisitorOf(ctx)
	if v.Has(a) {
		return nil
	}
	may := v.Decide(a, policy.Object{
		Repos: v.Repos(ctx, t.Places()...), Own: p.Asked(v, p.Account(t)), Linked: v.Task == t.ID,
	})
	switch {
	case may.Allowed:
		return nil
	case may.Hidden:
		return fmt.Errorf("%w: %s", tasks.ErrNotFound, t.ID)
	}
	return &RoleError{may.Reason}
}

// Asked reports whether a visitor is the asker "source/account", or the person with that name.
func (p People) Asked(v Visitor, asker string) bool {
	return asker == "chat/"+format.OneWord(v.Name) ||
		v.Login != "" && strings.EqualFold(asker, ForgeSource+"/"+format.OneWord(v.Login)) ||
		v.Person != "" && strings.EqualFold(p.Named(asker), v.Person)
}

// Visible returns whether the visitor of a context sees what has the scopes. It returns nil if they see everything.
func (p People) Visible(ctx context.Context) func(scopes []string) bool {
	v := VisitorOf(ctx)
	if v.Has(policy.See) {
		return nil
	}
	return func(scopes []string) bool {
		repos := scope.Repositories(scopes)
		if len(repos) == 0 {
			repos = []string{""}
		}
		own := p.Asked(v, scope.Name(scopes, scope.User))
		return v.Decide(policy.See, policy.Object{Repos: v.Repos(ctx, repos...), Own: own}).Allowed
	}
}
