package taskstest

import (
	"context"
	"encoding/json"
	"sync"
	"time"
)

// Tell answers the front doors' questions to workers with the stored reply, until the test ends. It returns the
// questions so far.
func (w Worker) Tell(reply func(question string) string) (asked func() []string) {
	w.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.Context()))
	var mu sync.Mutex
	var questions []string
	var done sync.WaitGroup
	done.Go(func() {
		_ = w.Store.Workers.Respond(ctx, "", func() bool { return true },
			func(_ context.Context, q json.RawMessage) (json.RawMessage, time.Duration) {
				mu.Lock()
				defer mu.Unlock()
				questions = append(questions, string(q))
				return json.RawMessage(reply(string(q))), time.Minute
			})
	})
	w.Cleanup(func() { cancel(); done.Wait() })
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return append([]string(nil), questions...)
	}
}
