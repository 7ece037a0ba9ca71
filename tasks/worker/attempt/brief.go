package attempt

import (
	"cmp"
	"context"
	"fmt"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/rights"
)

// briefer asks what a task may do now, and what its source tells the agent about it. It is safe for concurrent use.
type briefer struct {
	store     *store.Store
	policy    rights.Policy
	sandboxed func() bool
}

// permit limits the profile of a task to what the policy and the rights of its asker allow now. An *tasks.InputError
// refuses the task. limited says why the run may only read although the task asks for more; empty: it may do all.
func (b *briefer) permit(ctx context.Context, t tasks.Task) (_ tasks.Task, limited string, _ error) {
	t, err := b.policy.Now(t)
	if err != nil {
		return t, "", err
	}
	t.Profile, limited, err = b.policy.Permit(ctx, b.store, t, b.sandboxed())
	return t, limited, err
}

// brief returns the source's brief of a task, with the pictures that are stored for the task.
func (b *briefer) brief(ctx context.Context, s tasks.Source, t tasks.Task, files string) (tasks.Brief, error) {
	brief, err := s.Brief(ctx, t, files)
	if err != nil {
		return tasks.Brief{}, fmt.Errorf("brief: %w", err)
	}
	if len(t.Pictures) == 0 {
		return brief, nil
	}
	data, err := b.store.Pictures.Read(ctx, t.ID)
	if err != nil {
		return tasks.Brief{}, err
	}
	for i, p := range t.Pictures {
		if i >= len(data) {
			brief.Prompt.Text = cmp.Or(brief.Prompt.Text,
				t.Prompt) + fmt.Sprintf("\n\n(The picture %q came with this message but is no longer stored.)", p.Name)
			continue
		}
		brief.Prompt.Files = append(brief.Prompt.Files, agent.File{Name: p.Name, Type: p.Type, Data: data[i]})
	}
	return brief, nil
}
