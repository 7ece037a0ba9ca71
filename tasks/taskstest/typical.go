package taskstest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
)

// Typical leads tasks of a typical size through their stages, to measure what they take in Redis: each has a thread of
// its own, a prompt of 300 bytes, 150 events of 350 bytes, 140 KB of logs and a session of 60 KB, of random words. It
// must not be used concurrently.
type Typical struct {
	Store *store.Store
	Desk  *desk.Desk

	n      int
	random *rand.Rand
	words  []string
}

// Wait submits a task, which a limit lets wait. The first call also starts the task that it waits for.
func (y *Typical) Wait(ctx context.Context) (id string, err error) {
	limit := store.Cap{Scope: "repo:", Max: 1}
	if y.n == 0 {
		first, err := y.submit(ctx)
		if err == nil {
			_, err = y.Store.Claim(ctx, first, 0, "worker-1", limit)
		}
		if err != nil {
			return "", err
		}
	}
	if id, err = y.submit(ctx); err != nil {
		return "", err
	}
	_, err = y.Store.Claim(ctx, id, 0, "worker-1", limit)
	full, ok := errors.AsType[*store.Full](err)
	if !ok {
		return "", fmt.Errorf("claim beyond the limit: %w", err)
	}
	_, _, err = y.Store.Explain(ctx, id, 1, fmt.Sprint(full.Scope, full.Place), 0)
	return id, err
}

func (y *Typical) submit(ctx context.Context) (id string, err error) {
	y.n++
	name := fmt.Sprintf("%012d", y.n)
	r, err := y.Desk.Submit(ctx, tasks.Task{
		ID: tasks.NewID(time.Now(), "chat", name), Source: "chat", Kind: "prompt", Thread: "chat/" + name,
		Class: tasks.Interactive, Profile: agent.Write, Actor: "ann", Repo: "acme/payments", Prompt: y.text(300),
	})
	return r.ID, err
}

// Run starts a task and leads it to the middle of its run, with half of its events and a checkpoint.
func (y *Typical) Run(ctx context.Context, id string) (*store.Claim, error) {
	c, err := y.Store.Claim(ctx, id, 1, "worker-1") // the limit has used up the first delivery
	if err != nil {
		return nil, err
	}
	return c, errors.Join(y.write(ctx, c), c.SaveCheckpoint(ctx, store.Checkpoint{Session: y.session()}))
}

// Finish leads it to the end of its run, with all of its events.
func (y *Typical) Finish(ctx context.Context, c *store.Claim) error { return y.write(ctx, c) }

func (y *Typical) write(ctx context.Context, c *store.Claim) error {
	var events []json.RawMessage
	for range 75 {
		events = append(events, event(agent.Event{Kind: agent.Text, Text: y.text(285)}))
	}
	return c.Append(ctx, events...)
}

// End ends a task, after whose final message its thread and its results stay.
func (y *Typical) End(ctx context.Context, c *store.Claim) error {
	log, raw := []byte(y.text(40<<10)), []byte(y.text(100<<10))
	ending, err := json.Marshal(tasks.Ending{Kind: tasks.Answered, Result: agent.Result{Text: y.text(600)}})
	if err := errors.Join(
		err, c.SaveSession(ctx, y.session()), c.End(ctx, ending), c.Release(ctx),
		c.SaveLog(ctx, "log", log), c.SaveLog(ctx, "raw", raw),
	); err != nil {
		return err
	}
	post, found, err := y.Store.Outbox.Take(ctx, c.ID())
	if err != nil || !found {
		return fmt.Errorf("take final message of %s: found %t, %w", c.ID(), found, err)
	}
	return errors.Join(y.Store.Outbox.MarkPosted(ctx, post), y.Store.Events.Archive(ctx, c.ID()))
}

func (y *Typical) session() store.Session {
	said := json.RawMessage(`{"said":"` + y.text(900) + `"}`) // the request and the answer
	return store.Session{ID: "5f0c2a4e-7a1f-4d8e-9a53-0f2b1c9d7e61", Meta: said, Data: []byte(y.text(60 << 10))}
}

// text returns words of a vocabulary of 4,000, n bytes in all.
func (y *Typical) text(n int) string {
	if y.words == nil {
		y.random = rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same for each measurement
		for range 4000 {
			var w []byte
			for range 2 + y.random.IntN(8) {
				w = append(w, "abcdefghijklmnopqrstuvwxyz"[y.random.IntN(26)])
			}
			y.words = append(y.words, string(w))
		}
	}
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(y.words[y.random.IntN(len(y.words))] + " ")
	}
	return b.String()[:n]
}

func event(e agent.Event) json.RawMessage {
	e.Time = time.Now()
	data, err := json.Marshal(e)
	if err != nil {
		panic(err) // an event has no fields that cannot be encoded
	}
	return data
}
