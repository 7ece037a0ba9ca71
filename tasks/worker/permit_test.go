package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
)

// A consent for the whole task covers calls with the same reason, also in the task's next run, and is reported each
// time.
func TestConsentForTheTask(t *testing.T) {
	t.Parallel()
	f, s := talking(t, nil)
	s.settled = make(chan tasks.Answer, 10)
	call := func(reason, command string) agent.ToolRequest {
		return agent.ToolRequest{Tool: "Bash", Reason: reason, Input: json.RawMessage(`{"command":"` + command + `"}`)}
	}
	var runs atomic.Int32
	interrupted := make(chan struct{})
	f.agent.do = func(ctx context.Context, _ agent.Spec, h agent.Host) (agent.Result, error) {
		var allowed []bool
		for _, c := range []agent.ToolRequest{
			call("it is Friday", "deploy a"), call("it is Friday", "deploy b"), call("it costs", "deploy c"),
		} {
			allowed = append(allowed, h.Permit(ctx, c).Allow)
		}
		if runs.Add(1) == 1 {
			close(interrupted)
			<-ctx.Done()
			r := answer("")
			r.Outcome = agent.Stopped
			return r, nil
		}
		return answer(fmt.Sprint(allowed)), nil
	}
	stop := f.talker(s)
	id := f.submit(f.task("a", "deploy"))
	say := func(text string) {
		t.Helper()
		if q := <-s.asked; len(q.Options) != 3 || q.Consent == "" {
			t.Errorf("asked %+v", q)
		}
		if _, err := f.desk.Answer(t.Context(), id, "", "ann", text); err != nil {
			t.Fatal(err)
		}
		if a := <-s.settled; a.Text != text || a.By != "ann" {
			t.Errorf("shown %+v", a)
		}
	}
	say(tasks.Always)
	say(tasks.Denial(" too dear "))
	<-interrupted
	stop()
	f.talker(s)
	if a := <-s.settled; a.Text != tasks.Denial("too dear") {
		t.Errorf("shown again: %+v", a)
	}
	if e := f.ending(id); e.Result.Text != "[true true false]" {
		t.Errorf("the agent got %q", e.Result.Text)
	}
	notices := 0
	for l, err := range f.desk.Follow(t.Context(), id, "") {
		if err != nil {
			t.Fatal(err)
		}
		if l.Event.Kind == agent.Notice &&
			l.Event.Text == "Bash (it is Friday): ann approved this for the whole task." {
			notices++
		}
	}
	if notices != 3 { // for b, and in the second run for a and b
		t.Errorf("%d notices, want 3", notices)
	}
	if len(s.asked) != 0 {
		t.Errorf("asked once more: %+v", <-s.asked)
	}
}
