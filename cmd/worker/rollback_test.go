package main

import (
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/internal/await"
	"github.com/errand-fleet/errand/internal/fake/modelfake"
	"github.com/redis/go-redis/v9"
)

// Redis loses its last writes after an ending was stored and posted. The thread still has the final message: nothing
// runs again, and no second message appears.
func TestForgottenEnding(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	thinking, gate := make(chan struct{}, 1), make(chan struct{})
	w.model.Answer("pay the invoices", modelfake.Turn{Started: thinking, Gate: gate, Text: "They are paid."})
	base := w.frontDoor()
	w.process()
	root := w.mention("pay the invoices", "")
	<-thinking
	rollback := w.snapshot()
	close(gate)
	w.answers(root, 1)
	page := base + "/api/tasks/" + w.taskID(root)
	w.becomes(page, `"posted": true`)
	calls := len(w.model.Requests())

	rollback()
	w.becomes(page, `"found": true`)
	w.becomes(page, `"posted": true`)
	if final := w.answers(root, 1); len(final) != 1 || !strings.Contains(final[0], "They are paid.") {
		t.Errorf("final messages: %q", final)
	}
	if n := len(w.model.Requests()); n != calls {
		t.Errorf("the model was asked %d times more", n-calls)
	}
	if status := w.get(page); !strings.Contains(status, "was answered before") {
		t.Errorf("the task: %s", status)
	}
}

// becomes waits until a page of the API contains this text.
func (w *world) becomes(url, words string) {
	w.Helper()
	ctx := await.Context(w)
	for page := ""; !strings.Contains(page, words); page = w.get(url) {
		if ctx.Err() != nil {
			w.Fatalf("wait for %s: %s", words, page)
		}
	}
}

// snapshot saves everything in Redis and returns a function that restores it, like a server that restarts without its
// last writes.
func (w *world) snapshot() (rollback func()) {
	w.Helper()
	client := w.admin()
	type entry struct {
		key, dump string
		ttl       time.Duration
	}
	var all []entry
	keys, err := client.Keys(w.Context(), "*").Result()
	if err != nil {
		w.Fatal(err)
	}
	for _, key := range keys {
		dump, err := client.Dump(w.Context(), key).Result()
		if err != nil {
			continue // it has expired in the meantime
		}
		all = append(all, entry{key, dump, max(client.PTTL(w.Context(), key).Val(), 0)})
	}
	return func() {
		_, err := client.TxPipelined(w.Context(), func(p redis.Pipeliner) error {
			p.FlushAll(w.Context())
			for _, e := range all {
				p.Restore(w.Context(), e.key, e.ttl, e.dump)
			}
			return nil
		})
		if err != nil {
			w.Fatal(err)
		}
	}
}
