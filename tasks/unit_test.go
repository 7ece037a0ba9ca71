package tasks

import (
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/errand-fleet/errand/agent"
	"github.com/google/go-cmp/cmp"
)

func TestNewID(t *testing.T) {
	t.Parallel()
	at := time.UnixMicro(1_700_000_000_123_456)
	for identity, want := range map[string]string{
		"C0ABC":                  "1700000000123456-slack-c0abc",
		"../../etc/passwd":       "1700000000123456-slack-..-..-etc-passwd",
		"ünï code":               "1700000000123456-slack--n-code",
		strings.Repeat("x", 200): "1700000000123456-slack-" + strings.Repeat("x", 57),
	} {
		got := NewID(at, "slack", identity)
		if got != want || !ValidID(got) || len(got) > 80 {
			t.Errorf("NewID(%q) = %q, valid %v; want %q", identity, got, ValidID(got), want)
		}
	}
	for _, bad := range []string{"", "x", "1700000000123456", "1700000000123456-Slack-x", "1700000000123456-slack-x/y", "1700000000123456-slack-x\n", strings.Repeat("1", 90)} {
		if ValidID(bad) {
			t.Errorf("%q is valid", bad)
		}
	}
}

func TestDeliveryNumber(t *testing.T) {
	t.Parallel()
	for n := range 3 {
		if got, err := deliveryNumber("a", deliveryID("a", n)); err != nil || got != n {
			t.Errorf("%d came back as %d, %v", n, got, err)
		}
	}
	for _, bad := range []string{"b", "a.r", "a.rx", "ab", "b.r1"} {
		if _, err := deliveryNumber("a", bad); err == nil {
			t.Errorf("%q is taken for a delivery of a", bad)
		}
	}
}

// Automatic work of all classes together leaves a slot, however it comes.
func TestSlotsLeaveOneForPeople(t *testing.T) {
	t.Parallel()
	for total := 1; total <= 6; total++ {
		s := newSlots(total, memory{}, slog.New(slog.DiscardHandler))
		for range 10 {
			for _, class := range []string{Maintenance, Background, Review} {
				_, _ = s.take(class)
			}
		}
		slot, err := s.take(Interactive)
		if err != nil {
			t.Errorf("of %d slots none is left for a person", total)
			continue
		}
		if total > 2 && s.running() < 2 {
			t.Errorf("of %d slots only %d are used", total, s.running())
		}
		before := s.running()
		slot.release()
		slot.release() // twice gives back once
		if s.running() != before-1 {
			t.Errorf("after release %d slots are taken, before %d", s.running(), before)
		}
		people := 0
		for {
			if _, err := s.take(Interactive); err != nil {
				break
			}
			people++
		}
		if s.running() > max(total, 2) || people == 0 {
			t.Errorf("%d of %d slots taken, %d by people", s.running(), total, people)
		}
	}
}

func TestRecorderJoinsAndNeverWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var got []agent.Event
		calls := 0
		gate := make(chan struct{})
		r := newRecorder(func(batch ...json.RawMessage) error {
			<-gate
			mu.Lock()
			defer mu.Unlock()
			calls++
			for _, b := range batch {
				var e agent.Event
				if err := json.Unmarshal(b, &e); err != nil {
					t.Error(err)
				}
				got = append(got, e)
			}
			return nil
		})
		r.add(agent.Event{Kind: agent.Text, Text: "first"})
		synctest.Wait() // the store has the first piece and hangs
		for range 3000 {
			r.add(agent.Event{Kind: agent.Text, Text: "x"})
		}
		r.add(agent.Event{Kind: agent.ToolUse, Tool: "Read"})
		r.add(agent.Event{Kind: agent.Text, Text: "last"})
		close(gate)
		r.close()
		var text strings.Builder
		for _, e := range got {
			text.WriteString(e.Text)
		}
		if want := "first" + strings.Repeat("x", 3000) + "last"; text.String() != want {
			t.Errorf("%d characters of %d arrived", text.Len(), len(want))
		}
		if calls != 2 || len(got) != 4 {
			t.Errorf("%d events in %d calls, want 4 in 2", len(got), calls)
		}
	})
}

// The first word does not wait for what an event before it would be joined to; what follows it is joined.
func TestRecorderStoresTheFirstWordSoon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var at []time.Duration
		r := newRecorder(func(...json.RawMessage) error { at = append(at, time.Since(began)); return nil })
		r.add(agent.Event{Kind: agent.Started})
		synctest.Wait()
		for range 3 {
			<-time.After(10 * time.Millisecond)
			r.add(agent.Event{Kind: agent.Text, Text: "x"})
		}
		r.close()
		if want := []time.Duration{0, recordSoon, recordSoon + recordEvery}; !slices.Equal(at, want) {
			t.Errorf("stored after %v, want %v", at, want)
		}
	})
}

func TestRecorderIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		var kept int
		r := newRecorder(func(batch ...json.RawMessage) error { <-gate; kept += len(batch); return nil })
		for range 10 * maxWaiting {
			r.add(agent.Event{Kind: agent.ToolUse})
		}
		close(gate)
		r.close()
		if kept > 2*maxWaiting {
			t.Errorf("%d events were kept", kept)
		}
	})
}

func TestEncodeSplitsTextBetweenCharacters(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", maxText)
	var joined strings.Builder
	for _, b := range encode([]agent.Event{{Kind: agent.Text, Text: long}}) {
		var e agent.Event
		if err := json.Unmarshal(b, &e); err != nil || len(b) > 16<<10 || !utf8.ValidString(e.Text) {
			t.Errorf("%d bytes, %v", len(b), err)
		}
		joined.WriteString(e.Text)
	}
	if joined.String() != long {
		t.Errorf("%d bytes of %d", joined.Len(), len(long))
	}
	// Six bytes of JSON for each byte of text.
	nul := strings.Repeat("\x00", 20<<10)
	joined.Reset()
	for _, b := range encode([]agent.Event{{Kind: agent.Text, Text: nul}}) {
		var e agent.Event
		if err := json.Unmarshal(b, &e); err != nil || len(b) > 16<<10 {
			t.Errorf("%d bytes, %v", len(b), err)
		}
		joined.WriteString(e.Text)
	}
	if joined.String() != nul {
		t.Errorf("%d bytes of %d", joined.Len(), len(nul))
	}
	input := mustJSON(strings.Repeat("<", 6000))
	if got := encode([]agent.Event{{Kind: agent.ToolUse, Text: "Running x", Input: input}}); len(got) != 1 || len(got[0]) > 16<<10 || !strings.Contains(string(got[0]), "Running x") {
		t.Errorf("large input: %d events", len(got))
	}
	// What is not text is cut: one event stays one.
	if got := encode([]agent.Event{{Kind: agent.ToolResult, Text: long}}); len(got) != 1 || len(got[0]) > 16<<10 {
		t.Errorf("%d events", len(got))
	}
}

func TestEndingForPeople(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 2000)
	for name, c := range map[string]struct {
		e                         Ending
		sentence, partial, footer string
	}{
		"answered": {
			Ending{Kind: Answered, Result: agent.Result{Text: "42", Partial: "4", Turns: 3, CostUSD: 0.127, Model: "m", Duration: 61 * time.Second}},
			"", "", "1m1s · 3 turns · $0.13 · m",
		},
		"at once": {
			Ending{Kind: Answered, Result: agent.Result{Text: "42", Turns: 1, Duration: time.Second}},
			"", "", "1s · 1 turn",
		},
		"fresh": {
			Ending{Kind: Answered, Result: agent.Result{Text: "42", Fresh: true, Duration: time.Second}},
			"", "", "1s · a new conversation, the earlier one could not be resumed",
		},
		"interrupted": {
			Ending{Kind: Answered, Result: agent.Result{Text: "42", CostUSD: 0.5, Duration: time.Second}, Bill: Bill{Earlier: 0.25, Near: []string{"your budget for today: $8.10 of $10.00"}}},
			"", "", "1s · $0.75 · your budget for today: $8.10 of $10.00",
		},
		"crashed": {
			Ending{Kind: Answered, Result: agent.Result{Text: "42", CostUSD: 0.5, Duration: time.Second}, Bill: Bill{Crashes: 1}},
			"", "", "1s · $0.50 and the unknown cost of what was lost with a worker",
		},
		"empty":     {Ending{Kind: Answered}, "Done. The agent had nothing to add.", "", ""},
		"timed out": {Ending{Kind: TimedOut, Limit: "2h", Result: agent.Result{Partial: long}}, "This timed out after 2h and was stopped. Ask for less at once, or ask again to go on from here.", strings.Repeat("é", 1000) + "…", ""},
		"stalled":   {Ending{Kind: Stalled, Limit: "15m"}, "The agent showed no sign of work for 15m and was stopped. Ask again to go on.", "", ""},
		"cancelled": {Ending{Kind: Cancelled, By: "Ann", Result: agent.Result{Partial: " half "}}, "This was stopped by Ann. Ask again to go on.", "half", ""},
		"failed":    {Ending{Kind: Failed, Reason: "No."}, "No.", "", ""},
		"unsaid":    {Ending{Kind: Failed}, "This failed. The log says more.", "", ""},
		"lost":      {Ending{Kind: Lost}, "The workers running this died several times, so it was given up, at unknown cost. An operator should look at the log.", "", ""},
	} {
		got := []string{c.e.Sentence(), c.e.Partial(), c.e.Footer()}
		if diff := cmp.Diff([]string{c.sentence, c.partial, c.footer}, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// The servers of tools that an operator configured are told what the run is about.
func TestSpecNamesThreadAndRepository(t *testing.T) {
	t.Parallel()
	s := new(Worker).spec(Task{ID: "1", Thread: "chat/1", Repo: "acme/api"}, Brief{}, place{}, conversation{}, &past{})
	if s.Thread != "chat/1" || s.Repo != "acme/api" {
		t.Errorf("thread %q, repository %q", s.Thread, s.Repo)
	}
}
