package desk

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/redisserver/redistest"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/queue"
	"github.com/errand-fleet/errand/tasks/rights"
)

// harness is a desk on a real Redis, without workers.
type harness struct {
	*testing.T
	url    string
	desk   *Desk
	store  *store.Store
	queue  *queue.Queue
	policy rights.Policy
	n      int
}

func newFleet(t *testing.T) *harness {
	t.Helper()
	return newFleetOn(t, redistest.Start(t))
}

func newFleetOn(t *testing.T, url string) *harness {
	t.Helper()
	f := &harness{T: t, url: url, policy: rights.Policy{Limit: time.Hour}}
	client := f.redis()
	f.store = f.open(store.Config{Redis: client})
	f.queue = queue.New(f.store, client, time.Hour)
	f.desk = New(f.store, f.queue, f.policy, nil)
	return f
}

// redis is a separate client.
func (f *harness) redis() *redis.Client {
	f.Helper()
	return redistest.Client(f, f.url)
}

// open is a store with other times.
func (f *harness) open(c store.Config) *store.Store {
	f.Helper()
	s, err := store.New(c)
	if err != nil {
		f.Fatal(err)
	}
	return s
}

// task makes a task; each is a microsecond later than the one before.
func (f *harness) task(thread, prompt string) tasks.Task {
	f.n++
	return tasks.Task{
		ID: tasks.NewID(time.UnixMicro(1_700_000_000_000_000+int64(f.n)), "fake", thread), Source: "fake", Kind: "test",
		Thread: "fake/" + thread, Class: tasks.Interactive, Profile: agent.Read, Actor: "somebody", Prompt: prompt,
	}
}

func (f *harness) submit(t tasks.Task) string {
	f.Helper()
	if _, err := f.desk.Submit(f.Context(), t); err != nil {
		f.Fatal(err)
	}
	return t.ID
}
