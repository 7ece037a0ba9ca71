package github

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/testlog"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/thread"
)

func use(tool string) agent.Event { return agent.Event{Kind: agent.ToolUse, Text: tool} }

// States are written with a pause. One that could not be written is written again, unless there is a newer one, and
// errand complains once.
func TestStatesArePaced(t *testing.T) {
	t.Parallel()
	w := withToken(t)
	pause := w.src.reports.pause
	synctest.Test(t, func(t *testing.T) {
		logged := &testlog.Log{}
		r := &issueAnswer{answer: &answer{log: slog.New(slog.NewTextHandler(logged, nil))}}
		start := time.Now()
		var (
			log   []string
			fails atomic.Int32
		)
		r.progress = thread.ShowLatest(t.Context(), pause, r.log, func(_ context.Context, state string) error {
			log = append(log, fmt.Sprintf("%s %s", time.Since(start), state))
			if fails.Add(-1) >= 0 {
				return errors.New("502")
			}
			return nil
		})
		working, asks, replied := agent.Event{Kind: agent.Started}, agent.Event{Kind: tasks.Asked},
			agent.Event{Kind: tasks.Replied}
		r.Update(working)
		synctest.Wait()
		r.Update(asks)
		r.Update(replied) // it is there already
		r.Update(asks)
		fails.Store(2)
		<-time.After(70 * time.Second) // two failures
		r.Update(replied)
		<-time.After(5 * time.Minute)
		fails.Store(1)
		r.Update(asks)
		<-time.After(time.Second)
		r.Update(working)
		<-time.After(time.Minute)
		if err := r.progress.Close(t.Context()); err != nil {
			t.Error(err)
		}
		want := []string{
			"0s " + stateWorking, "30s " + stateAsking, "1m0s " + stateAsking, "1m30s " + stateWorking,
			"6m10s " + stateAsking, "6m40s " + stateWorking,
		}
		if diff := cmp.Diff(want, log); diff != "" {
			t.Error(diff)
		}
		if got := strings.Count(logged.String(), "show progress"); got != 1 {
			t.Errorf("said %d times:\n%s", got, logged)
		}
	})
}
