package main

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/e2e/chaos/script"
)

func TestSameSeedSamePlan(t *testing.T) {
	t.Parallel()
	set := settings{seed: 42, tasks: 300, faults: 100, span: time.Minute}
	opts := cmp.AllowUnexported(plan{}, step{}, fault{})
	if diff := cmp.Diff(newPlan(set), newPlan(set), opts); diff != "" {
		t.Error(diff)
	}
	other := set
	other.seed++
	if cmp.Equal(newPlan(set), newPlan(other), opts) {
		t.Error("another seed makes the same plan")
	}
}

// The contents that a useful plan must have.
func TestPlanHasEverything(t *testing.T) {
	t.Parallel()
	p := newPlan(settings{seed: 1, tasks: 1000, faults: 340, span: 10 * time.Minute, s3: "versitygw"})
	tokens, asked, replies, cancels, orders := map[string]bool{}, map[place]int{}, map[place]int{}, 0, script.Orders{}
	seen := map[place]map[int]bool{inSlack: {}, inGitHub: {}, inChat: {}}
	for i, s := range p.steps {
		if i > 0 && s.at < p.steps[i-1].at {
			t.Fatal("the steps are in no order")
		}
		if s.cancel != "" {
			cancels++
			continue
		}
		tokens[s.orders.Token] = true
		asked[s.place]++
		if seen[s.place][s.thread] {
			replies[s.place]++
		}
		seen[s.place][s.thread] = true
		orders.Crash = orders.Crash || s.orders.Crash
		orders.Tool = orders.Tool || s.orders.Tool
		orders.Stubborn = orders.Stubborn || s.orders.Stubborn
		orders.Big = orders.Big || s.orders.Big
		orders.Ask = orders.Ask || s.orders.Ask
	}
	if len(tokens) != 1000 || cancels < 20 ||
		orders != (script.Orders{Crash: true, Tool: true, Stubborn: true, Big: true, Ask: true}) {
		t.Errorf("%d tokens, %d cancels, orders %+v", len(tokens), cancels, orders)
	}
	for _, where := range []place{inSlack, inGitHub, inChat} {
		if asked[where] < 100 || replies[where] < 30 {
			t.Errorf("%s: %d asked, %d of them follow-ups", where, asked[where], replies[where])
		}
	}
	kinds, manners, limits := map[kind]int{}, map[manner]int{}, 0
	for _, f := range p.faults {
		kinds[f.kind]++
		manners[f.manner]++
		if f.manner == exhausted {
			limits++
		}
		if f.lasts > 45*time.Second || f.kind == partition && f.lasts > 40*time.Second {
			t.Errorf("%s lasts %s", f.kind, f.lasts)
		}
	}
	if len(p.faults) != 340 || len(kinds) != 22 || len(manners) != 9 || limits != 1 {
		t.Errorf("%d faults, %v, %v", len(p.faults), kinds, manners)
	}
}

// The disks of workers that take one task are those of their containers.
func TestPlanForContainers(t *testing.T) {
	t.Parallel()
	for _, f := range newPlan(settings{seed: 1, tasks: 1000, faults: 340, span: time.Minute, once: true}).faults {
		if f.kind == fullDisk || f.kind == noInodes || f.kind == slowDisk {
			t.Fatalf("%s at %s", f.kind, f.at)
		}
	}
}

func TestCommandLine(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]struct {
		tasks int
		span  time.Duration
		ok    bool
	}{
		"":                    {1000, 588 * time.Second, true},
		"-tasks=60":           {60, 35 * time.Second, true},
		"-for=3m":             {168, 99 * time.Second, true},
		"-for=3m -tasks=10":   {10, 99 * time.Second, true},
		"-tasks=1":            {1, 20 * time.Second, true},
		"-once":               {200, 167 * time.Second, true},
		"-once -for=2m":       {79, 66 * time.Second, true},
		"-once -leaks":        {},
		"-workers=1":          {},
		"-pools=3":            {1000, 588 * time.Second, true},
		"-pools=3 -workers=5": {},
		"-pools=0":            {},
		"surplus":             {},
	} {
		var args []string
		if line != "" {
			args = strings.Fields(line)
		}
		s, err := parse(args, io.Discard)
		if (err == nil) != want.ok {
			t.Errorf("%q: %v", line, err)
		}
		if want.ok && (s.tasks != want.tasks || s.span.Round(time.Second) != want.span || s.seed == 0 ||
			s.faults != int(float64(s.tasks)*faultsPerTask)) {
			t.Errorf("%q: %+v", line, s)
		}
	}
}
