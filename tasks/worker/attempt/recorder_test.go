package attempt

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks/internal/format"
)

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
		synctest.Wait() // the store has the first piece, then blocks
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

// The first word is sent without waiting for more text to join; the text after it is joined.
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
	input := format.JSON(strings.Repeat("<", 6000))
	if got := encode([]agent.Event{{Kind: agent.ToolUse, Text: "Running x", Input: input}}); len(got) != 1 ||
		len(got[0]) > 16<<10 || !strings.Contains(string(got[0]), "Running x") {
		t.Errorf("large input: %d events", len(got))
	}
	// Other events are cut: one event stays one event.
	if got := encode([]agent.Event{{Kind: agent.ToolResult, Text: long}}); len(got) != 1 || len(got[0]) > 16<<10 {
		t.Errorf("%d events", len(got))
	}
}
