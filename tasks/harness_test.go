package tasks

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/redisserver/redistest"
	"github.com/errand-fleet/errand/store"
)

// fleet is a desk on a real Redis, without workers.
type fleet struct {
	*testing.T
	url    string
	desk   *Desk
	store  *store.Store
	queue  *Queue
	policy Policy
	n      int
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{T: t, url: redistest.Start(t), policy: Policy{Limit: time.Hour}}
	client := f.redis()
	f.store = f.open(store.Config{Redis: client})
	f.queue = NewQueue(f.store, client, time.Hour)
	f.desk = NewDesk(f.store, f.queue, f.policy, nil)
	return f
}

// redis is a separate client.
func (f *fleet) redis() *redis.Client {
	f.Helper()
	opt, err := redis.ParseURL(f.url)
	if err != nil {
		f.Fatal(err)
	}
	client := redis.NewClient(opt)
	f.Cleanup(func() { _ = client.Close() })
	return client
}

// open is a store with other times.
func (f *fleet) open(c store.Config) *store.Store {
	f.Helper()
	s, err := store.New(c)
	if err != nil {
		f.Fatal(err)
	}
	return s
}

// task makes a task; each is a microsecond later than the one before.
func (f *fleet) task(thread, prompt string) Task {
	f.n++
	return Task{
		ID: NewID(time.UnixMicro(1_700_000_000_000_000+int64(f.n)), "fake", thread), Source: "fake", Kind: "test",
		Thread: "fake/" + thread, Class: Interactive, Profile: agent.Read, Actor: "somebody", Prompt: prompt,
	}
}

func (f *fleet) submit(t Task) string {
	f.Helper()
	if _, err := f.desk.Submit(f.Context(), t); err != nil {
		f.Fatal(err)
	}
	return t.ID
}
