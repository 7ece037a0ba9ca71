package chat

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

type object = map[string]any

func TestAnswerIsStreamed(t *testing.T) {
	t.Parallel()
	h := newHarness(t, Config{})
	s := h.ask(`{"message": "What is 6 × 7?", "thread": "sums"}`)
	c := h.Claim(s.id)
	h.Append(c, agent.Event{Kind: agent.Text, Text: "It is "})
	// Text arrives before more is written: it is streamed, not collected.
	if diff := cmp.Diff(object{"type": "token", "content": "It is "}, s.event()); diff != "" {
		t.Error(diff)
	}
	h.Append(c,
		agent.Event{Kind: agent.Started, Text: "model"},
		agent.Event{Kind: agent.Thinking, Text: "hm"},
		agent.Event{Kind: agent.ToolUse, Tool: "Bash", Text: "Running bc", Input: h.JSON("secret")},
		agent.Event{Kind: agent.ToolResult, Text: "42"},
		agent.Event{Kind: agent.Text, Parent: "toolu_1", Text: "a sub-agent's words"},
		agent.Event{Kind: agent.Text, Text: "42."},
		agent.Event{Kind: agent.TurnEnd, Text: "It is 42."},
	)
	h.End(c, tasks.Ending{Kind: tasks.Answered, Result: agent.Result{
		Text: "It is 42.", CostUSD: 0.25, Usage: agent.Usage{Input: 3, Output: 4},
	}, Published: &tasks.Published{Problem: "Nothing could be pushed."}})
	want := []object{
		{"type": "tool_use", "content": "Running bc", "tool": "Bash"},
		{"type": "token", "content": "42."},
		{"type": "done", "result": "It is 42.", "cost": 0.25, "note": "Nothing could be pushed.", "usage": object{
			"input_tokens": 3.0, "output_tokens": 4.0, "cache_read_input_tokens": 0.0,
			"cache_creation_input_tokens": 0.0,
		}},
	}
	if diff := cmp.Diff(want, s.rest()); diff != "" {
		t.Error(diff)
	}
}

func TestTalkIsStreamed(t *testing.T) {
	t.Parallel()
	h := newHarness(t, Config{})
	s := h.ask(`{"message": "Paint it."}`)
	c := h.Claim(s.id)
	h.Append(c,
		agent.Event{Kind: tasks.Said, Text: "I begin."},
		agent.Event{
			Kind: tasks.Asked, Text: "Which?", Input: h.JSON(tasks.Question{
				Key: "k", Text: "Which?", Options: []string{"red", "blue"},
			}),
		},
		agent.Event{Kind: tasks.Replied, Text: "red", Tool: "console"},
	)
	h.End(c, tasks.Ending{Kind: tasks.Failed, Reason: "No paint."})
	want := []object{
		{"type": "update", "content": "I begin."},
		{"type": "question", "content": "Which?", "question": "k", "options": []any{"red", "blue"}},
		{"type": "answer", "content": "red"},
		{"type": "error", "content": "No paint."},
	}
	if diff := cmp.Diff(want, s.rest()); diff != "" {
		t.Error(diff)
	}
}

// A message that a live run absorbs gets the run's ID and its answer; one that waits gets its position.
func TestAbsorbedIsStreamed(t *testing.T) {
	t.Parallel()
	h := newHarness(t, Config{})
	s := h.ask(`{"message": "Paint it.", "thread": "t"}`)
	c := h.Claim(s.id)
	second := h.ask(`{"message": "Blue.", "thread": "t"}`)
	absorbed, ok, err := c.Take(t.Context(), false,
		h.JSON(agent.Event{Kind: tasks.Absorbed, ToolID: s.id, Text: "Into account."}))
	if err != nil || !ok || absorbed.ID != second.id {
		t.Fatalf("took %s, %t, %v", absorbed.ID, ok, err)
	}
	h.Append(c, agent.Event{Kind: tasks.Absorbed, ToolID: second.id, Tool: "console", Text: "Blue."})
	at := time.Now()
	ending := tasks.Ending{Kind: tasks.Failed, Reason: "No paint.", At: at, Covers: []string{second.id}}
	short := h.JSON(tasks.Ending{Kind: tasks.Failed, Reason: "No paint.", At: at})
	if err := c.EndWith(t.Context(), h.JSON(ending), store.Covered{IDs: ending.Covers, Ending: short}); err != nil {
		t.Fatal(err)
	}
	last := object{"type": "error", "content": "No paint."}
	if diff := cmp.Diff([]object{{"type": "absorbed", "content": "Blue."}, last}, s.rest()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]object{{"type": "absorbed", "id": s.id, "content": "Into account."}, last},
		second.rest()); diff != "" {
		t.Error(diff)
	}

	h.ask(`{"message": "One.", "thread": "u"}`)
	resp := h.post(`{"message": "Two.", "thread": "u", "model": "opus"}`)
	defer resp.Body.Close()
	r := &reading{harness: h, body: resp.Body, in: bufio.NewReader(resp.Body)}
	if e := r.event(); e["position"] != 1.0 {
		t.Errorf("first event: %v", e)
	}
}

func TestEventsSayWhereToGoOn(t *testing.T) {
	t.Parallel()
	h := newHarness(t, Config{})
	s := h.ask(`{"message": "Hello"}`)
	h.Append(h.Claim(s.id), agent.Event{Kind: agent.Text, Text: "one"}, agent.Event{Kind: agent.Text, Text: "two"})
	id, _, ok := strings.Cut(strings.TrimPrefix(s.block(), "id: "), "\n")
	if !ok {
		t.Fatal("the event has no id")
	}
	for l, err := range h.Desk.Follow(t.Context(), s.id, id) {
		if err != nil || l.Event.Text != "two" {
			t.Errorf("after %s comes %q, %v", id, l.Event.Text, err)
		}
		break
	}
}

func TestEndings(t *testing.T) {
	t.Parallel()
	usage := object{
		"input_tokens": 0.0, "output_tokens": 0.0, "cache_read_input_tokens": 0.0, "cache_creation_input_tokens": 0.0,
	}
	for name, test := range map[string]struct {
		ending tasks.Ending
		want   object
	}{
		"without words": {
			tasks.Ending{Kind: tasks.Answered},
			object{"type": "done", "result": "Done. The agent had nothing to add.", "cost": 0.0, "usage": usage},
		},
		"refused": {
			tasks.Ending{Kind: tasks.Refused, Reason: "You may not do this."},
			object{"type": "error", "content": "You may not do this."},
		},
		"failed": {
			tasks.Ending{Kind: tasks.Failed, Reason: "The model refuses the credential."},
			object{"type": "error", "content": "The model refuses the credential."},
		},
		"timed out": {
			tasks.Ending{Kind: tasks.TimedOut, Limit: "2h", Result: agent.Result{Partial: "So far I know"}},
			object{
				"type": "error", "partial": "So far I know",
				"content": "Stopped at the time limit of 2h. Ask for something smaller, or ask again to continue from here.",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, Config{})
			s := h.ask(`{"message": "Hello"}`)
			h.End(h.Claim(s.id), test.ending)
			if diff := cmp.Diff([]object{test.want}, s.rest()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCancelEndsTheStream(t *testing.T) {
	t.Parallel()
	h := newHarness(t, Config{})
	s := h.ask(`{"message": "Hello"}`)
	if _, err := h.Desk.Cancel(t.Context(), s.id, "someone"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]object{{
		"type": "error", "content": "Stopped by someone. Ask again to continue.",
	}}, s.rest()); diff != "" {
		t.Error(diff)
	}
}

func TestClosedConnectionCancelsNothing(t *testing.T) {
	t.Parallel()
	h := newHarness(t, Config{})
	s := h.ask(`{"message": "Hello"}`)
	c := h.Claim(s.id)
	_ = s.body.Close()
	<-h.returned // as the server sees it
	if got := h.Status(s.id); got.State != "running" || got.Cancel != "" {
		t.Errorf("state %s, cancelled by %q", got.State, got.Cancel)
	}
	h.End(c, tasks.Ending{Kind: tasks.Answered})
}

func TestShutdownEndsStreamsAndNoTask(t *testing.T) {
	t.Parallel()
	for name, all := range map[string]bool{"of the source": false, "of the source and every request at once": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, Config{}, func(ctx context.Context, s *http.Server) {
				if all {
					s.BaseContext = func(net.Listener) context.Context { return ctx }
				}
			})
			var streams []*reading
			for range 8 {
				streams = append(streams, h.ask(`{"message": "Hello"}`))
			}
			h.stop()
			for _, s := range streams {
				want := []object{{
					"type": "error", "content": "The stream was interrupted, but the task continues: see /tasks/" +
						s.id + ".",
				}}
				if diff := cmp.Diff(want, s.rest()); diff != "" {
					t.Error(diff)
				}
				if got := h.Status(s.id); got.State != "waiting" || got.Cancel != "" {
					t.Errorf("state %s, cancelled by %q", got.State, got.Cancel)
				}
			}
		})
	}
}

func TestLostRedisIsSaid(t *testing.T) {
	t.Parallel()
	h := newHarness(t, Config{})
	s := h.ask(`{"message": "Hello"}`)
	_ = h.redis.Close()
	got := s.rest()
	if len(got) != 1 || got[0]["type"] != "error" ||
		!strings.Contains(got[0]["content"].(string), "the task continues") {
		t.Errorf("got %v", got)
	}
}

func TestSilenceIsFilledWithHeartbeats(t *testing.T) {
	t.Parallel()
	h := newHarness(t, Config{Heartbeat: time.Millisecond})
	s := h.ask(`{"message": "Hello"}`)
	for range 3 {
		if got := s.block(); got != ": heartbeat\n" {
			t.Errorf("got %q", got)
		}
	}
}

// A server's time limits are meant for short requests: they must not cut a stream.
func TestStreamOutlivesTheServersLimits(t *testing.T) {
	t.Parallel()
	const limit = time.Second
	h := newHarness(t, Config{Heartbeat: limit / 10}, func(_ context.Context, s *http.Server) {
		s.ReadTimeout, s.WriteTimeout = limit, limit
	})
	s := h.ask(`{"message": "Hello"}`)
	for range 15 {
		_ = s.block()
	}
	h.End(h.Claim(s.id), tasks.Ending{Kind: tasks.Answered, Result: agent.Result{Text: "late"}})
	if got := s.rest(); len(got) != 1 || got[0]["result"] != "late" {
		t.Errorf("got %v", got)
	}
}
