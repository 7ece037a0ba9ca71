package review

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/agent"
	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/thread"
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
func startReport(ctx context.Context, l hub.StatusIndicator) *Report {
	r := &Report{by: &Reviews{}, indicator: l}
	r.progress = thread.ShowLatest(ctx, l.Interval(), nil, r.show)
	return r
}

func using(tool string) agent.Event { return agent.Event{Kind: agent.ToolUse, Text: tool} }

func TestUpdatesAreLatestWins(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &fakeIndicator{start: time.Now()}
		r := startReport(t.Context(), l)
		r.Update(agent.Event{Kind: agent.Started})
		synctest.Wait()
		for i := range 100 {
			r.Update(using(fmt.Sprintf("Reading %d.go", i)))
			r.Update(agent.Event{Kind: agent.Text, Text: "words"})
		}
		<-time.After(time.Minute)
		r.Update(using("Reading 99.go")) // is there already
		<-time.After(time.Second)
		r.Update(using("Asking @octocat\nto \u202ehelp"))
		synctest.Wait()
		if err := r.progress.Close(t.Context()); err != nil {
			t.Error(err)
		}
		r.Update(using("late")) // it is not shown, and nothing waits
		r.Update(using("later"))
		want := []string{"0s The agent has started.", "15s Reading 99.go", "1m1s Asking @\u200boctocat to help"}
		if diff := cmp.Diff(want, l.log); diff != "" {
			t.Error(diff)
		}
	})
}

// An update that is under way when the report is closed must not arrive after the final word.
func TestCloseWaitsForUpdate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &fakeIndicator{start: time.Now(), hold: make(chan struct{})}
		r := startReport(t.Context(), l)
		r.Update(using("Reading"))
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

// The public check shows what the agent does and that findings are checked, and no notice that is for the log.
func TestActionOf(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]agent.Event{
		"Reading a.go":        {Kind: agent.ToolUse, Text: "Reading a.go"},
		"Checking 2 findings": {Kind: agent.Notice, Text: "Checking 2 findings"},
		"":                    {Kind: agent.Notice, Text: "Settings: secret.example"},
	} {
		if got := actionOf(e); got != want {
			t.Errorf("%+v: %q", e, got)
		}
	}
}
