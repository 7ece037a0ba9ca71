package metrics

import (
	"testing"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/rights"
)

// What waits for a limit, a time or a credential, or behind another task of its thread, needs no worker.
func TestNeededWorkers(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	worker := func(credential string) store.Worker { return store.Worker{Slots: 4, Credential: credential} }
	task := func(change func(*store.LiveRecord)) func(*fakeFleet) {
		return func(f *fakeFleet) {
			f.waits(tasks.Interactive, now, time.Time{})
			change(&f.Live[len(f.Live)-1])
		}
	}
	times := func(n int, do func(*fakeFleet)) func(*fakeFleet) {
		return func(f *fakeFleet) {
			for range n {
				do(f)
			}
		}
	}
	fresh := task(func(*store.LiveRecord) {})
	of := func(class string) func(*fakeFleet) {
		return task(func(r *store.LiveRecord) { r.Class = class })
	}
	for name, c := range map[string]struct {
		fill   func(*fakeFleet)
		limits rights.Limits
		want   int
	}{
		"nothing":    {fill: func(*fakeFleet) {}, want: 0},
		"startable":  {fill: times(9, fresh), want: 3},
		"running":    {fill: times(9, task(func(r *store.LiveRecord) { r.State = store.Running })), want: 3},
		"background": {fill: times(5, of(tasks.Background)), want: 3},
		"review":     {fill: times(4, of(tasks.Review)), want: 2},
		"limited":    {fill: times(9, task(func(r *store.LiveRecord) { r.Blocked.Scope = "repo:a" })), want: 0},
		"about to be": {
			fill:   times(9, task(func(r *store.LiveRecord) { r.Scopes = []string{"repo:a"} })),
			limits: rights.Limits{Repository: 2}, want: 1,
		},
		"later":         {fill: times(9, task(func(r *store.LiveRecord) { r.At = now.Add(time.Hour) })), want: 0},
		"one thread":    {fill: times(9, task(func(r *store.LiveRecord) { r.Thread = "t" })), want: 1},
		"no worker yet": {fill: func(f *fakeFleet) { times(9, fresh)(f); f.Workers = nil }, want: 3},
		"small workers": {fill: func(f *fakeFleet) { times(9, fresh)(f); f.Workers[0].Slots = 2 }, want: 5},
		"held": {fill: func(f *fakeFleet) {
			times(9, fresh)(f)
			f.Credentials = []store.Credential{{Name: "a", Until: now.Add(time.Hour)}}
		}, want: 0},
		"another one, held": {fill: func(f *fakeFleet) {
			times(9, fresh)(f)
			f.Credentials = []store.Credential{{Name: "b", Refused: "x"}}
		}, want: 3},
	} {
		f := &fakeFleet{Fleet: Fleet{Workers: []store.Worker{worker("a")}}}
		c.fill(f)
		if got := f.needs(rights.Policy{Limits: c.limits}, now); len(got) != 1 || got[0].wanted != c.want {
			t.Errorf("%s: %+v workers, want %d", name, got, c.want)
		}
	}
}
