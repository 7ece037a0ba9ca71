package github

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/tasks/github/subject"
	"github.com/errand-fleet/errand/tasks/github/thread"
)

// All workers should share the state of a pull request, without losing concurrent changes.
func TestState(t *testing.T) {
	t.Parallel()
	w := withToken(t)
	o := thread.Ref{Repo: repo, Number: 7}
	if p, err := w.src.memory.State(t.Context(), o); err != nil || !cmp.Equal(p, subject.State{}) {
		t.Errorf("of a new pull request: %+v, %v", p, err)
	}
	other := w.source(func(c *config) { c.Hub.Token = "ghp_test" })
	var wg sync.WaitGroup
	for i, s := range []*Source{w.src, other} {
		wg.Go(func() {
			for n := range 3 {
				err := s.memory.ChangeState(t.Context(), o, func(p *subject.State) error {
					p.Rounds++
					p.Begin(fmt.Sprintf("%d/%d", i, n), "task")
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
	if err := other.memory.ChangeState(t.Context(), o,
		func(p *subject.State) error { p.Paused = true; return refuse }); !errors.Is(err, refuse) {
		t.Errorf("the change's own error: %v", err)
	}
	p, err := w.src.memory.State(t.Context(), o)
	if err != nil || p.Rounds != 6 || len(p.Begun) != 6 || p.Paused {
		t.Errorf("of changes at once: %+v, %v", p, err)
	}
	if p, err := w.src.memory.State(t.Context(), thread.Ref{Repo: repo, Number: 8}); err != nil || p.Rounds != 0 {
		t.Errorf("of another pull request: %+v, %v", p, err)
	}
}

// Unreadable state should be dropped: the pull request continues without it.
func TestStateOfAnotherForm(t *testing.T) {
	t.Parallel()
	w := withToken(t)
	o := thread.Ref{Repo: repo, Number: 7}
	set := func(json.RawMessage) (json.RawMessage, error) { return json.RawMessage(`[]`), nil }
	if err := w.db.Memos.ChangeMemo(t.Context(), "github/"+o.String()+"/state", set); err != nil {
		t.Fatal(err)
	}
	if p, err := w.src.memory.State(t.Context(), o); err != nil || !cmp.Equal(p, subject.State{}) {
		t.Errorf("read: %+v, %v", p, err)
	}
	if err := w.src.memory.ChangeState(t.Context(), o, func(p *subject.State) error { p.Rounds++; return nil }); err != nil {
		t.Error(err)
	}
	if p, err := w.src.memory.State(t.Context(), o); err != nil || p.Rounds != 1 {
		t.Errorf("after a change: %+v, %v", p, err)
	}
}
