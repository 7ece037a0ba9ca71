package attempt

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/internal/format"
	"github.com/errand-fleet/errand/workspace"
)

// A task with several repositories has a clone of each. The agent works in the main one and reaches the others, which
// are saved, restored and published like it.

// mixed returns the repositories whose code a run in a task's clones executes and could write into the others: those of
// a task with several, and what earlier runs of the thread may have brought. It notes them for later runs, which may be
// in new clones of the published work on other workers.
func (l *placer) mixed(ctx context.Context, t tasks.Task) (with []string, err error) {
	if t.Profile != agent.Write {
		return nil, nil
	}
	if len(t.Also) > 0 {
		with = t.Repositories()
	}
	for _, repo := range t.Repositories() {
		earlier, err := workspace.CodeIn(l.workspace, t.Thread, repo)
		if err != nil {
			return nil, fmt.Errorf("read what is in the clone of %s: %w", repo, err)
		}
		with = append(with, earlier...)
	}
	err = l.store.Memos.ChangeMemo(ctx, "code/"+t.Thread, func(body json.RawMessage) (json.RawMessage, error) {
		known := map[string][]string{} // by repository in lower case
		if body != nil && json.Unmarshal(body, &known) != nil || known == nil {
			return nil, fmt.Errorf("read whose code is in the clones of %s: %w", t.Thread, store.ErrDamaged)
		}
		for _, repo := range t.Repositories() {
			with = append(with, known[strings.ToLower(repo)]...)
		}
		slices.Sort(with)
		with = slices.Compact(with)
		if len(with) == 0 {
			return nil, nil
		}
		for _, repo := range t.Repositories() {
			known[strings.ToLower(repo)] = with
		}
		return format.JSON(known), nil
	})
	return with, err
}
