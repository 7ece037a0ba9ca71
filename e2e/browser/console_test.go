package browser

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/redisserver/redistest"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/queue"
	"github.com/errand-fleet/errand/tasks/rights"
	"github.com/errand-fleet/errand/tasks/taskstest"
)

const token = "correct-horse-battery-staple"

// console is a front door, `enqueue serve` on a real Redis; the test plays sources and workers.
type console struct {
	taskstest.Worker
	base   string
	client *redis.Client
	logs   string
	born   time.Time // of the next task
}

func newConsole(t *testing.T, env ...string) *console {
	t.Helper()
	url, state := redistest.Start(t), t.TempDir()
	c := &console{
		Worker: taskstest.Worker{T: t}, logs: filepath.Join(state, "logs"), born: time.Now().Add(-50 * time.Hour),
	}
	c.base = program(t, append([]string{
		"REDIS_URL=" + url, "ERRAND_STATE_DIR=" + state, "ERRAND_CONSOLE_TOKEN=" + token,
	}, env...),
		"enqueue serve", "errand listens at ")[0]
	opt, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	c.client = redis.NewClient(opt)
	t.Cleanup(func() { _ = c.client.Close() })
	if c.Store, err = store.New(store.Config{Redis: c.client}); err != nil {
		t.Fatal(err)
	}
	c.Desk = desk.New(c.Store, queue.New(c.Store, c.client, time.Hour), rights.Policy{}, nil)
	return c
}

// tab opens a tab that is logged in.
func (c *console) tab(t *testing.T) *tab {
	t.Helper()
	tb := newTab(t, c.base)
	tb.login("/")
	return tb
}

// login shows the token at the form, on the way to a page.
func (t *tab) login(path string) {
	t.Helper()
	t.open("/login?next=" + path)
	t.do(sendKeys("input[name=token]", token+"\n"))
	t.wait("location.pathname !== '/login' && document.readyState === 'complete'")
}

// submit puts a task in; each is younger than the one before.
func (c *console) submit(change func(*tasks.Task)) string {
	c.Helper()
	task := tasks.Task{
		Source: "slack", Kind: "mention", Class: tasks.Interactive, Profile: agent.Write, Actor: "Ann Lee",
		Prompt: "Do it",
	}
	change(&task)
	c.born = c.born.Add(time.Second)
	task.ID = tasks.NewID(c.born, task.Source, "c0payments")
	if task.Thread == "" {
		task.Thread = task.Source + "/" + task.ID
	}
	r, err := c.Desk.Submit(c.Context(), task)
	if err != nil {
		c.Fatal(err)
	}
	return r.ID
}

// ask has a running task ask a question.
func (c *console) ask(claim *store.Claim, q tasks.Question) {
	c.Helper()
	if _, err := claim.Ask(c.Context(), q.Key, c.JSON(q)); err != nil {
		c.Fatal(err)
	}
}

// log puts a task's log where the front door looks for those of its machine.
func (c *console) log(id, text string) {
	c.Helper()
	if err := os.MkdirAll(c.logs, 0o700); err != nil {
		c.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(c.logs, id+".log"), []byte(text), 0o600); err != nil {
		c.Fatal(err)
	}
}

// alive has a worker beat until the test ends.
func (c *console) alive(w store.Worker, health any) {
	c.Helper()
	w.Health = c.JSON(health)
	ctx, cancel := context.WithCancel(context.WithoutCancel(c.Context()))
	stopped := make(chan struct{})
	if _, err := c.Store.Workers.Beat(ctx, w); err != nil {
		c.Fatal(err)
	}
	go func() {
		defer close(stopped)
		beat := time.NewTicker(5 * time.Second)
		defer beat.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-beat.C:
				_, _ = c.Store.Workers.Beat(ctx, w) // at the end there is no Redis
			}
		}
	}()
	c.Cleanup(func() { cancel(); <-stopped })
}

// redis does something to Redis that no part of errand would.
func (c *console) redis(do func(context.Context, *redis.Client) error) {
	c.Helper()
	if err := do(c.Context(), c.client); err != nil {
		c.Fatal(err)
	}
}

func raw(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
