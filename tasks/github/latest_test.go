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
	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/internal/testlog"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/subject"
)

// fakeIndicator records when it is shown what.
type fakeIndicator struct {
	start time.Time
	hold  chan struct{} // if set, Show waits for it
	log   []string
}

func (l *fakeIndicator) Interval() time.Duration { return 15 * time.Second }

func (l *fakeIndicator) Show(ctx context.Context, action string) error {
	l.log = append(l.log, fmt.Sprintf("%s %s", time.Since(l.start), action))
	if l.hold != nil {
		<-l.hold
		l.log = append(l.log, fmt.Sprint("shown ", ctx.Err()))
	}
	return nil
}

func (l *fakeIndicator) Finish(_ context.Context, v hub.Verdict) error {
	l.log = append(l.log, v.Conclusion)
	return nil
}

func (l *fakeIndicator) Finished() time.Time { return time.Time{} }

// startReport is a report as Open makes it, with an indicator of the test.
func startReport(ctx context.Context, l hub.StatusIndicator) *report {
	by := &reporter{shared: shared{watched: func(string) bool { return false }}}
	r := &report{by: by, indicator: l, task: tasks.Task{Kind: subject.KindReview}}
	r.progress = showLatest(ctx, l.Interval(), nil, r.show)
	return r
}

func use(tool string) agent.Event { return agent.Event{Kind: agent.ToolUse, Text: tool} }

func TestUpdatesAreLatestWins(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &fakeIndicator{start: time.Now()}
		r := startReport(t.Context(), l)
		r.Update(agent.Event{Kind: agent.Started})
		synctest.Wait()
		for i := range 100 {
			r.Update(use(fmt.Sprintf("Reading %d.go", i)))
			r.Update(agent.Event{Kind: agent.Text, Text: "words"})
		}
		<-time.After(time.Minute)
		r.Update(use("Reading 99.go")) // is there already
		<-time.After(time.Second)
		r.Update(use("Asking @octocat\nto \u202ehelp"))
		synctest.Wait()
		if err := r.progress.close(t.Context()); err != nil {
			t.Error(err)
		}
		r.Update(use("late")) // it is not shown, and nothing waits
		r.Update(use("later"))
		want := []string{"0s The agent has started.", "15s Reading 99.go", "1m1s Asking @\u200boctocat to help"}
		if diff := cmp.Diff(want, l.log); diff != "" {
			t.Error(diff)
		}
	})
}

// States are written with a pause. One that could not be written is written again, unless there is a newer one, and
// errand complains once.
func TestStatesArePaced(t *testing.T) {
	t.Parallel()
	w := withToken(t)
	pause := w.src.reports.pause
	synctest.Test(t, func(t *testing.T) {
		logged := &testlog.Log{}
		r := &report{log: slog.New(slog.NewTextHandler(logged, nil))}
		start := time.Now()
		var (
			log   []string
			fails atomic.Int32
		)
		r.progress = showLatest(t.Context(), pause, r.log, func(_ context.Context, state string) error {
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
		if err := r.progress.close(t.Context()); err != nil {
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

func TestReportEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		r := startReport(ctx, &fakeIndicator{})
		cancel()
		<-r.progress.done // or the bubble is deadlocked
		if err := r.Close(t.Context(), tasks.Ending{Kind: tasks.Cancelled}); err != nil {
			t.Error(err)
		}
	})
}

// An update that is under way when the report is closed must not arrive after the final word.
func TestCloseWaitsForUpdate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &fakeIndicator{start: time.Now(), hold: make(chan struct{})}
		r := startReport(t.Context(), l)
		r.Update(use("Reading"))
		synctest.Wait()
		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := r.Close(impatient, tasks.Ending{Kind: tasks.Cancelled}); err == nil {
			t.Error("closed beside an update")
		}
		closed := make(chan error, 1)
		go func() { closed <- r.Close(t.Context(), tasks.Ending{Kind: tasks.Cancelled}) }()
		synctest.Wait()
		close(l.hold)
		if err := <-closed; err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{"0s Reading", "shown <nil>", "cancelled"}, l.log); diff != "" {
			t.Error(diff)
		}
	})
}
