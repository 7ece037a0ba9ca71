package worker

import (
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks/worker/logline"
	"github.com/errand-fleet/errand/workspace"
)

// inventory lists the environments on this machine for heartbeats.
type inventory struct {
	workspace *workspace.Workspace
	log       *slog.Logger

	mu   sync.Mutex
	at   time.Time
	last []store.Environment
}

// inventoryKept is how long a list of the environments is reported, so that heartbeats seldom read the disk.
const inventoryKept = time.Minute

// environments returns the environments that were used last.
func (i *inventory) environments() []store.Environment {
	i.mu.Lock()
	defer i.mu.Unlock()
	if time.Since(i.at) < inventoryKept {
		return i.last
	}
	all, err := workspace.EnvironmentsOf(i.workspace).List()
	logline.Warn(i.log, err, "list environments")
	slices.SortFunc(all, func(a, b workspace.Environment) int { return b.Used.Compare(a.Used) })
	i.at, i.last = time.Now(), nil
	for _, e := range all[:min(len(all), store.MaxEnvironments)] {
		i.last = append(i.last, store.Environment{
			ID: e.ID, Repo: e.Repo, Created: e.Created, Used: e.Used, Seconds: e.Took.Seconds(),
			Size: e.Size, From: e.From,
		})
	}
	return i.last
}
