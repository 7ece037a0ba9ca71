package assemble

import (
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/errand-fleet/errand/internal/redisserver/redistest"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/store/objects"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/queue"
	"github.com/errand-fleet/errand/tasks/rights"
	"github.com/errand-fleet/errand/tasks/taskstest"
)

// Waiting tasks, and live ones in the middle of their runs, take little of Redis' memory. docs/scaling.md has the
// figures.
func TestMemoryOfTasks(t *testing.T) {
	t.Parallel()
	const n, waiting, live = 1000, 4 << 10, 60 << 10 // bytes
	client := redistest.Client(t, redistest.Start(t))
	shared, err := objects.OpenDir(t.TempDir(), true)
	if err != nil {
		t.Fatal(err)
	}
	s, err := store.New(store.Config{Redis: client, Objects: shared, ClaimTTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	typical := taskstest.Typical{Store: s, Desk: desk.New(s, queue.New(s, client, time.Hour),
		rights.Policy{}, nil)}
	memory := func() int {
		info, err := client.Info(t.Context(), "memory").Result()
		if err != nil {
			t.Fatal(err)
		}
		used, err := strconv.Atoi(regexp.MustCompile(`used_memory:(\d+)`).FindStringSubmatch(info)[1])
		if err != nil {
			t.Fatal(err)
		}
		return used
	}

	var ids []string
	var empty int
	for i := range n + 1 {
		if i == 1 {
			empty = memory() // with the scripts, and the task that the others wait for
		}
		id, err := typical.Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			ids = append(ids, id)
		}
	}
	if each := (memory() - empty) / n; each > waiting {
		t.Errorf("a waiting task takes %d bytes, want at most %d", each, waiting)
	}
	for _, id := range ids {
		if _, err := typical.Run(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	if each := (memory() - empty) / n; each > live {
		t.Errorf("a live task takes %d bytes, want at most %d", each, live)
	}
}
