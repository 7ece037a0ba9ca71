package github

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/tasks/github/thread"
)

// All workers should share the state of a pull request, without losing concurrent changes.
func TestState(t *testing.T) {
	t.Parallel()
	w := withToken(t)
	o := thread.Ref{Repo: repo, Number: 7}
	if p, err := w.src.memory.state(t.Context(), o); err != nil || !cmp.Equal(p, prState{}) {
		t.Errorf("of a new pull request: %+v, %v", p, err)
	}
	other := w.source(func(c *config) { c.Hub.Token = "ghp_test" })
	var wg sync.WaitGroup
	for i, s := range []*Source{w.src, other} {
		wg.Go(func() {
			for n := range 3 {
				err := s.memory.changeState(t.Context(), o, func(p *prState) error {
					p.Rounds++
					p.begin(fmt.Sprintf("%d/%d", i, n), "task")
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	refuse := errors.New("no")
	if err := other.memory.changeState(t.Context(), o,
		func(p *prState) error { p.Paused = true; return refuse }); !errors.Is(err, refuse) {
		t.Errorf("the change's own error: %v", err)
	}
	p, err := w.src.memory.state(t.Context(), o)
	if err != nil || p.Rounds != 6 || len(p.Begun) != 6 || p.Paused {
		t.Errorf("of changes at once: %+v, %v", p, err)
	}
	if p, err := w.src.memory.state(t.Context(), thread.Ref{Repo: repo, Number: 8}); err != nil || p.Rounds != 0 {
		t.Errorf("of another pull request: %+v, %v", p, err)
	}
}

// Unreadable state should be dropped: the pull request continues without it.
func TestStateOfAnotherForm(t *testing.T) {
	t.Parallel()
	w := withToken(t)
	o := thread.Ref{Repo: repo, Number: 7}
	set := func(json.RawMessage) (json.RawMessage, error) { return json.RawMessage(`[]`), nil }
	if err := w.db.Memos.ChangeMemo(t.Context(), w.src.memory.stateMemo(o).Name, set); err != nil {
		t.Fatal(err)
	}
	if p, err := w.src.memory.state(t.Context(), o); err != nil || !cmp.Equal(p, prState{}) {
		t.Errorf("read: %+v, %v", p, err)
	}
	if err := w.src.memory.changeState(t.Context(), o, func(p *prState) error { p.Rounds++; return nil }); err != nil {
		t.Error(err)
	}
	if p, err := w.src.memory.state(t.Context(), o); err != nil || p.Rounds != 1 {
		t.Errorf("after a change: %+v, %v", p, err)
	}
}

func TestStateIsBounded(t *testing.T) {
	t.Parallel()
	var p prState
	for i := range 3 * maxBegun {
		if !p.begin(fmt.Sprint(i), "a") || p.begin(fmt.Sprint(i), "b") || !p.begin(fmt.Sprint(i), "a") ||
			len(p.Begun) > maxBegun {
			t.Fatalf("after %d: %d keys", i, len(p.Begun))
		}
	}
}
