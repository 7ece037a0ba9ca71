package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/errand-fleet/errand/e2e/chaos/script"
)

// check is one invariant and the result of checking it.
type check struct {
	name   string
	looked int      // number of things checked
	broken []string // descriptions of violations
}

func (c *check) breaks(format string, args ...any) {
	c.broken = append(c.broken, fmt.Sprintf(format, args...))
}

// checkCovered checks that every accepted event has a final message (lost), and that none has more than one (doubled).
// The latter includes events that were not accepted, because errand may have taken one whose response was lost. A
// message about an unknown task counts as doubled: one event has become two tasks.
func checkCovered(events []event, finals []final) (lost, doubled check) {
	lost.name, doubled.name = "lost", "doubled"
	by, known := map[string][]final{}, map[string]bool{}
	for _, e := range events {
		known[e.id] = true
	}
	for _, f := range finals {
		for _, id := range f.covers {
			by[id] = append(by[id], f)
			if !known[id] {
				doubled.breaks("%s is about %s, which was not requested", f.what, id)
			}
		}
	}
	for i, e := range events {
		if e.accepted {
			lost.looked++
		}
		doubled.looked++
		found := by[e.id]
		switch {
		case e.accepted && !e.task && e.declined == overtaken && reviewedLater(e, events[i+1:]):
		case e.accepted && !e.task && e.declined == reviewedBefore && len(found) == 1:
		case e.accepted && !e.task && e.declined != "":
			lost.breaks("%s in %s: answered %q", e.token, e.place, e.declined)
		case e.accepted && (e.id == "" || len(found) == 0):
			lost.breaks("%s in %s: %s has no terminal message", e.token, e.place, e.id)
		case e.id != "" && len(found) > 1:
			doubled.breaks("%s in %s: %s has %d terminal messages: %s and %s", e.token, e.place, e.id, len(found),
				found[0].what, found[1].what)
		}
	}
	return lost, doubled
}

// overtaken is what became of an event of a pull request with a known newer head.
const overtaken = "Ignored: A newer state of the pull request is known."

// reviewedBefore is what became of an event that was interpreted again, after the front door had died, when its head
// had been reviewed.
const reviewedBefore = "Ignored: The head was reviewed before."

// reviewedLater reports whether a later head of the same pull request has become a task, even if Redis has lost it since,
// or the answer that its webhook was accepted did not arrive.
func reviewedLater(e event, later []event) bool {
	return slices.ContainsFunc(later, func(l event) bool {
		return l.place == inGitHub && l.pull == e.pull && (l.task || l.declined == reviewedBefore)
	})
}

// checkTold checks that every message reached a CLI or its sender got the reason why not, and that each answer to a
// message contains its token and is from a CLI that had received it.
func checkTold(events []event, finals []final, lives []life) (told check) {
	told.name = "unheard"
	heard := map[string]bool{}
	for _, l := range lives {
		for _, t := range l.taken {
			heard[t.token] = true
		}
	}
	by := map[string]final{}
	for _, f := range finals {
		for _, id := range f.covers {
			by[id] = f
		}
	}
	for _, e := range events {
		f, ok := by[e.id]
		if !e.accepted || !ok || e.id == "" { // without a final message or ID it is lost, which is another check
			continue
		}
		told.looked++
		tokens, _ := script.Answers(f.text)
		answered := f.answers()
		switch {
		case f.place == inGitHub: // its answer is in a comment that later answers replace
			if f.answer && !heard[e.token] {
				told.breaks("%s in %s: reviewed, but no CLI has taken it up", e.token, e.place)
			}
		case strings.TrimSpace(f.text) == "":
			told.breaks("%s in %s: %s says nothing", e.token, e.place, f.what)
		case answered && !slices.Contains(tokens, e.token):
			told.breaks("%s in %s: %s answers only %v", e.token, e.place, f.what, tokens)
		case answered && !heard[e.token]:
			told.breaks("%s in %s: answered, but no CLI has taken it up", e.token, e.place)
		}
	}
	return told
}

// checkAnswered checks that the fleet has worked: a fleet that takes nothing, or only gives reasons, violates no other
// check. A fleet with faults answers far more than half.
func checkAnswered(events []event, finals []final) (few check) {
	few.name = "too few answers"
	by := map[string]bool{}
	for _, f := range finals {
		for _, id := range f.covers {
			by[id] = by[id] || f.answers()
		}
	}
	answered := 0
	for _, e := range events {
		if e.accepted {
			few.looked++
		}
		if e.accepted && by[e.id] {
			answered++
		}
	}
	if 2*answered <= few.looked {
		few.breaks("%d of %d events that were accepted have an answer", answered, few.looked)
	}
	return few
}

// checkComments checks that a pull request has at most one review comment, and one if a status reports a review.
func checkComments(events []event, finals []final, comments map[int][]string) (c check) {
	c.name = "comments"
	reviewed := map[string]bool{}
	for _, f := range finals {
		reviewed[f.covers[0]] = reviewed[f.covers[0]] || f.answer
	}
	wanted := map[int]bool{}
	for _, e := range events {
		if e.place == inGitHub {
			wanted[e.pull] = wanted[e.pull] || reviewed[e.id]
		}
	}
	for pull, want := range wanted {
		c.looked++
		switch own := comments[pull]; {
		case len(own) > 1:
			c.breaks("pull request %d has %d review comments", pull, len(own))
		case want && len(own) == 0:
			c.breaks("pull request %d has no review comment, but a status says so", pull)
		case want && len(script.Tokens(own[0])) == 0:
			c.breaks("pull request %d has a review comment without an answer", pull)
		}
	}
	return c
}

// codes are the exit codes of a worker that takes one task (docs/deploy.md), as the report names them.
var codes = map[int]string{
	-1: "killed", 0: "its task was done or given back", 1: "could not start", 2: "wrong command line",
	3: "infrastructure failed", 4: "could run no task",
}

// way names how a life ended.
func (e exit) way() string { return cmp.Or(codes[e.code], itoa(e.code)) }

// endsWithin is how long after a fault a worker may end because of it. It first hands its task back, and posts what it
// has to say.
const endsWithin = time.Minute

// explains reports whether a fault at that time may be why a worker ended.
func (w window) explains(e exit) bool {
	return w.touches(e.from, e.to) && e.to.Before(w.to.Add(endsWithin))
}

// checkExits checks that every worker that takes one task ended by itself with a code that says so: that it had one and
// left it well, that it could not start while it was without Redis, or that errand's infrastructure failed while a
// fault explains that. away and failed return the times of such faults for a worker.
func checkExits(exits []exit, away, failed func(exit) []window) (wrong check) {
	wrong.name, wrong.looked = "wrong exits", len(exits)
	for _, e := range exits {
		var reasons []window
		switch e.code {
		case 0:
			continue
		case 1:
			reasons = away(e)
		case 3:
			reasons = failed(e)
		}
		if !slices.ContainsFunc(reasons, func(w window) bool { return w.explains(e) }) {
			wrong.breaks("%s: %s at %s, after %s", e.worker, e.way(), clock(e.to), e.to.Sub(e.from))
		}
	}
	return wrong
}

// membership is the pool of one life of a worker. PIDs are reused, and even another worker may get one.
type membership struct {
	pid  int
	from time.Time
	pool string
}

// poolAt returns the pool of the worker that had a PID at a time, or "".
func poolAt(members []membership, pid int, at time.Time) string {
	latest := membership{}
	for _, m := range members {
		if m.pid == pid && !m.from.After(at) && m.from.After(latest.from) {
			latest = m
		}
	}
	return latest.pool
}

// checkPools checks that every message was taken up by a CLI of a worker of its pool, and that each pool has taken up
// some. pools has the pools of the messages by token.
func checkPools(lives []life, pools map[string]string, members []membership) (wrong check) {
	wrong.name = "in the wrong pool"
	idle := map[string]bool{}
	for _, pool := range pools {
		idle[pool] = true
	}
	for _, l := range lives {
		for _, t := range l.taken {
			want, got := pools[t.token], poolAt(members, l.worker, l.start)
			if want == "" || got == "" { // an orphan: its worker died before the CLI began
				continue
			}
			wrong.looked++
			delete(idle, want)
			if got != want {
				wrong.breaks("%s of pool %s was taken up by run %s in pool %s", t.token, want, l.run, got)
			}
		}
	}
	for _, pool := range slices.Sorted(maps.Keys(idle)) {
		wrong.breaks("pool %s has taken up nothing", pool)
	}
	return wrong
}

// tolerance is how long two processes may appear to overlap because the kernel reported an end late.
const tolerance = 100 * time.Millisecond

// checkOverlaps checks that no two CLIs of a thread are alive at once, and that no tool of an earlier CLI is alive when
// the next begins. excused reports whether a CLI may overlap at that time because its worker could not know.
// checkOverlaps returns the number of these.
func checkOverlaps(
	lives []life, threads map[string]string, excused func(l life, at time.Time) bool,
) (overlaps, orphans check, excuses int) {
	overlaps.name, orphans.name = "overlaps", "orphans"
	told := map[identity]bool{} // orphans are reported once
	end := time.Time{}
	for _, l := range lives {
		end = later(later(end, l.start), l.end)
	}
	for _, group := range byThread(lives, threads) {
		for i, b := range group {
			if b.role != script.CLI {
				orphans.looked++
				continue
			}
			overlaps.looked++
			for _, a := range group[:i] {
				until := a.end
				if until.IsZero() {
					until = end.Add(2 * tolerance)
				}
				beside := until.Sub(b.start)
				switch {
				case beside <= tolerance:
				case excused(a, b.start) || excused(b, b.start):
					excuses++
				case a.role == script.Tool && told[a.identity]:
				case a.role == script.Tool:
					told[a.identity] = true
					orphans.breaks("tool %d of run %s is alive %s after CLI %d of %s began at %s", a.pid, a.run, beside,
						b.pid, b.run, clock(b.start))
				default:
					overlaps.breaks("CLI %d of run %s is alive %s after CLI %d of %s began at %s", a.pid, a.run, beside,
						b.pid, b.run, clock(b.start))
				}
			}
		}
	}
	return overlaps, orphans, excuses
}

// byThread groups processes by the thread of the messages that they received and by their working directory, which
// belongs to one thread. A tool belongs to its run.
func byThread(lives []life, threads map[string]string) map[string][]life {
	thread, dirs := map[string]string{}, map[string]string{} // by run, by directory
	for _, l := range lives {
		for _, t := range l.taken {
			if name := threads[t.token]; name != "" {
				thread[l.run], dirs[l.dir] = name, name
			}
		}
	}
	groups := map[string][]life{}
	for _, l := range lives {
		name := thread[l.run]
		if name == "" && l.role == script.CLI {
			name = dirs[l.dir]
		}
		if name == "" {
			name = "run " + l.run
		}
		groups[name] = append(groups[name], l)
	}
	for _, g := range groups {
		slices.SortStableFunc(g, func(a, b life) int { return a.start.Compare(b.start) })
	}
	return groups
}

// takeovers returns the times from the death of each worker until a run of it had a CLI again. undisturbed excludes
// those during which Redis was unavailable.
func takeovers(deaths []death, lives []life, outages []window) (all, undisturbed []time.Duration) {
	for _, d := range deaths {
		for _, l := range lives {
			if !d.ends(l) {
				continue
			}
			next := slices.IndexFunc(lives, func(n life) bool { return n.follows(l.run, d) })
			if next < 0 {
				continue // it was cancelled, or had just finished
			}
			took := lives[next].start.Sub(d.at)
			all = append(all, took)
			if !slices.ContainsFunc(outages, func(w window) bool { return w.touches(d.at, lives[next].start) }) {
				undisturbed = append(undisturbed, took)
			}
		}
	}
	slices.Sort(all)
	slices.Sort(undisturbed)
	return all, undisturbed
}

// takeoverWithin is how long after the death of a worker its runs must live again, on a machine that is not overloaded:
// 23 s until the latest takeover, 3 s to spread over the workers, and the start of a CLI.
const takeoverWithin = 30 * time.Second

// checkTakeovers checks that the CLIs of a killed worker's runs live again in time. The time begins again when Redis, a
// service or another worker has recovered from a fault. A run that has lost a worker before is left out: it waits for a
// worker without other runs. Runs without another CLI had just ended or lost their task with Redis' data; other checks
// notice a run that is forgotten.
func checkTakeovers(deaths []death, lives []life, disturbances func(worker int) []window) (late check) {
	late.name = "late takeovers"
	for _, d := range deaths {
		waits := disturbances(d.worker)
		slices.SortFunc(waits, func(a, b window) int { return a.from.Compare(b.from) })
		for _, l := range lives {
			if !d.ends(l) || slices.ContainsFunc(deaths, func(o death) bool { return o.endedBefore(l.run, d, lives) }) {
				continue
			}
			i := slices.IndexFunc(lives, func(n life) bool { return n.follows(l.run, d) })
			if i < 0 {
				continue
			}
			late.looked++
			again, from := lives[i].start, d.at
			for _, w := range waits {
				if w.touches(d.at, again) {
					from = later(from, w.to)
				}
			}
			if took := again.Sub(from); took > takeoverWithin {
				late.breaks("the CLI of run %s lived again %s after the worker died, and %s after the last disturbance",
					l.run, again.Sub(d.at).Round(time.Millisecond), took.Round(time.Millisecond))
			}
		}
	}
	return late
}

// ends reports whether a CLI was alive on the worker that died.
func (d death) ends(l life) bool {
	return l.role == script.CLI && l.worker == d.worker && !l.start.After(d.at) && !l.over(d.at)
}

// endedBefore reports whether this death ended a CLI of the run before another death did.
func (d death) endedBefore(run string, other death, lives []life) bool {
	return d.at.Before(other.at) && slices.ContainsFunc(lives, func(l life) bool { return l.run == run && d.ends(l) })
}

// follows reports whether a process is a CLI of the run that started after the death.
func (l *life) follows(run string, d death) bool {
	return l.role == script.CLI && l.run == run && l.start.After(d.at)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05.000") }
