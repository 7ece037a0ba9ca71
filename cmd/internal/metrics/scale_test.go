package metrics

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/rights"
)

// A random fleet makes the number of wanted workers turn at most twice in fallAfter, and the number is never less than
// what was needed throughout a minute, nor more than what was needed at some time since fallAfter.
func TestWantedWorkersDoNotFlap(t *testing.T) {
	t.Parallel()
	const span = 4 * time.Hour
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 0))
		begun := time.Unix(1_700_000_000, 0)
		s := &scale{}
		apart := time.Duration(5+r.IntN(26)) * time.Second // between two scrapes
		type sample struct {
			at   time.Time
			need int
		}
		var seen []sample
		need, last, turns, rose := r.IntN(10), 0, 0, false
		for now := begun; now.Sub(begun) < span; now = now.Add(apart) {
			switch r.IntN(6) {
			case 0:
				need = r.IntN(60) // a burst, or its end
			case 1:
				need = max(0, need+r.IntN(5)-2)
			}
			seen = append(seen, sample{now, need})
			wanted := s.next(need, 5, now)
			if now.After(begun) && wanted != last {
				if up := wanted > last; up != rose {
					turns, rose = turns+1, up
				}
			}
			last = wanted
			least, most := need, need
			for _, old := range slices.Backward(seen) {
				if now.Sub(old.at) >= fallAfter+apart {
					break
				}
				most = max(most, old.need)
				if now.Sub(old.at) < riseAfter+apart {
					least = min(least, old.need)
				}
			}
			if now.Sub(begun) > fallAfter+apart && (wanted < least || wanted > most) {
				t.Fatalf("seed %d after %s: %d wanted, needed were %d to %d", seed, now.Sub(begun), wanted, least, most)
			}
		}
		if most := 2 * int(span/fallAfter); turns > most {
			t.Errorf("seed %d: %d turns in %s, at most %d", seed, turns, span, most)
		}
	}
}

// The number follows the need in these steps.
func TestWantedWorkers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		needs string // one character for each ten seconds
		want  string
	}{
		"a burst of short tasks": {needs: "2992299229922", want: "2222222222222"},
		"more work":              {needs: "2578888888888", want: "2222578888888"},
		"less work":              {needs: "3" + strings.Repeat("1", 61), want: "3" + strings.Repeat("3", 60) + "1"},
		"less work with a burst": {
			needs: "3" + strings.Repeat("1", 59) + "4" + strings.Repeat("1", 60), want: "3" + strings.Repeat("3", 120),
		},
	} {
		s, got := &scale{}, ""
		for i, n := range c.needs {
			got += fmt.Sprint(s.next(int(n-'0'), int(c.needs[0]-'0'), time.Unix(int64(10*i), 0)))
		}
		if got != c.want {
			t.Errorf("%s:\nneeded %s\nwanted %s\nnot    %s", name, c.needs, got, c.want)
		}
	}
}

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
		"later":      {fill: times(9, task(func(r *store.LiveRecord) { r.At = now.Add(time.Hour) })), want: 0},
		"one thread": {fill: times(9, task(func(r *store.LiveRecord) { r.Thread = "t" })), want: 1},
		"credential": {fill: times(9, fresh), limits: rights.Limits{Credential: 3}, want: 1},
		"two credentials": {
			fill:   func(f *fakeFleet) { times(9, fresh)(f); f.Workers = append(f.Workers, worker("b")) },
			limits: rights.Limits{Credential: 4}, want: 2,
		},
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
		s := &scales{limits: c.limits}
		s.of(f.Fleet, now)
		if got := s.of(f.Fleet, now.Add(fallAfter)); len(got) != 1 || got[0].wanted != c.want {
			t.Errorf("%s: %+v workers, want %d", name, got, c.want)
		}
	}
}
