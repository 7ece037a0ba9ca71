package console

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/display"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/web/internal/view"
)

// head is the top of a task's page: what a reader learns at a glance.
type head struct {
	Doing, Detail string    // what the agent does now, or why it waits and what came of it
	When          string    // what happens at Until, such as "continues about "
	Until         time.Time // zero: nothing is known
	Initials      string    // of the person who asked
	Links         tasks.Links
	Thread        string     // the name of Links.Thread
	Pulls         []pullLink // the pull requests that the task opened, or else the one that it is about
	Chat          string     // the URL of the conversation
	Next          string     // what to do now that it has ended, in a sentence
	Opened        bool       // the task opened Pulls
	Class         string     // of its ending: done, stopped, limit or failed
	Model         string
}

// pullLink is a button that leads to a pull request.
type pullLink struct{ URL, Text string }

// newHead returns the head of a task without what it waits for.
func newHead(s tasks.Status, links tasks.Links, now time.Time) head {
	h := head{Links: links, Initials: initials(s.Name()), Model: s.Task.Options.Model}
	h.Pulls, h.Opened = pullLinks(s, links.PullRequest)
	line := s.Headline(now)
	h.Detail, h.Until = display.Text(line.Detail), line.Until
	switch {
	case line.State == tasks.NeedsAnswer:
		h.Detail = "" // the question follows
	case line.Continues():
		h.Detail = strings.ToLower(line.State) + " " + h.Detail
	}
	h.When = whenOf(line)
	if name, ok := strings.CutPrefix(s.Task.Thread, chatSource+"/"); ok && threadName.MatchString(name) {
		h.Chat = "/chat/" + name
	}
	switch s.Task.Source {
	case "slack":
		h.Thread = "Slack thread"
	case "github":
		h.Thread = "GitHub"
		name := strings.TrimSuffix(strings.TrimPrefix(s.Task.Thread, "github/"), "/review")
		if strings.Contains(name, "#") {
			h.Thread = name
		}
	default:
		h.Thread = s.Task.Source
	}
	if s.Ending == nil {
		return h
	}
	h.Class, h.Model = endingClass(s.Ending.Kind), cmp.Or(s.Ending.Result.Model, h.Model)
	h.Next = h.next(s)
	return h
}

// pullLinks returns the pull requests that a task opened, or else the one that it is about. Several are told apart by
// their names.
func pullLinks(s tasks.Status, about string) (list []pullLink, opened bool) {
	var pulls []*tasks.Published
	if s.Ending != nil {
		pulls = s.Ending.PullRequests()
	}
	for _, p := range pulls {
		l := pullLink{p.PullRequest.URL, "Open PR"}
		if len(pulls) > 1 {
			l.Text = "Open " + display.Line(p.Name())
		}
		list = append(list, l)
	}
	if opened = len(list) > 0; !opened {
		list = []pullLink{{about, "Open PR"}}
	}
	return slices.DeleteFunc(list, func(l pullLink) bool {
		u, err := url.Parse(l.URL)
		return err != nil || u.Scheme != "https" && u.Scheme != "http"
	}), opened
}

// whenOf returns what happens at the time of a headline, such as "resumes about "; empty if it has no time.
func whenOf(line tasks.Headline) (when string) {
	line.Text(func(preposition string, _ time.Time) string {
		when = preposition
		return ""
	})
	return when
}

// next says what a reader can do with the result, where the ending's own sentence does not.
func (h head) next(s tasks.Status) string {
	switch {
	case h.Opened:
		return nextReview(s.Ending.PullRequests())
	case h.Class == "failed":
		return "Next: when the cause is gone, retry. The same request runs again in the same conversation."
	case h.Class != "done" || h.Chat != "" || h.Links.Thread == "":
		return ""
	case s.Task.Source == "slack":
		return "Next: to continue this conversation, reply in the Slack thread."
	}
	return "Next: to continue this conversation, comment on " + h.Thread + "."
}

// nextReview says what to do with pull requests of errand.
func nextReview(pulls []*tasks.Published) string {
	draft := ""
	if !slices.ContainsFunc(pulls, func(p *tasks.Published) bool { return !p.PullRequest.Draft }) {
		draft = "draft "
	}
	if len(pulls) == 1 {
		return fmt.Sprintf("Next: review %spull request #%d. To ask for changes, comment on it.", draft,
			pulls[0].PullRequest.Number)
	}
	return fmt.Sprintf("Next: review the %d %spull requests. To ask for changes, comment on them.", len(pulls), draft)
}

// endingClass returns the CSS class of a kind of ending.
func endingClass(k tasks.EndingKind) string {
	switch k.Info().Class {
	case tasks.ClassDone:
		return "done"
	case tasks.ClassStopped:
		return "stopped"
	case tasks.ClassLimit:
		return "limit"
	}
	return "failed"
}

// initials returns up to two letters of a name.
func initials(name string) string {
	var letters []rune
	for _, word := range strings.FieldsFunc(name, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}) {
		letters = append(letters, unicode.ToUpper([]rune(word)[0]))
	}
	if n := len(letters); n > 2 {
		letters = []rune{letters[0], letters[n-1]}
	}
	return string(letters)
}

// meter is the duration and the usage of a run, so far or in total, and their limits.
type meter struct {
	Since   time.Time // the start of the run; zero if it is not running
	Elapsed string
	Limit   string
	Tokens  string // of the model
	Cost    string
	Budget  string
	Machine string // what the run took of its machine
}

func newMeter(s tasks.Status, used desk.Logged, now time.Time) meter {
	var m meter
	usd, usage := s.Spent(), (*agent.Usage)(nil)
	switch e := s.Ending; {
	case e != nil && e.Result.Duration > 0:
		m.Elapsed, usage = tasks.Lasted(lastRun(s)), &e.Result.Usage
		m.Machine = machineUse(e.Result.Resources)
	case e != nil && lastRun(s) >= time.Second && !s.Started.IsZero(): // it was stopped before it had a result
		m.Elapsed, usage = tasks.Lasted(lastRun(s)), used.Event.Usage
	case e == nil && s.State == string(store.Running):
		if !stored(used).Before(s.Started.Truncate(time.Millisecond)) { // it is not of an earlier run
			usage = used.Event.Usage
			if !s.Settled {
				usd += used.Event.CostUSD
			}
		}
		m.Since, m.Elapsed = s.Started, tasks.Lasted(max(0, now.Sub(s.Started)))
		if limit := s.Task.Options.Limit; limit > 0 {
			m.Limit = tasks.Lasted(limit)
		}
	}
	if usage != nil {
		if in := usage.Input + usage.CacheRead + usage.CacheCreation; in > 0 {
			m.Tokens = display.Count(in) + " tokens in, " + display.Count(usage.Output) + " out"
		}
	}
	m.Cost = view.USD(usd)
	if s.Ending == nil {
		m.Budget = view.USD(s.Task.Options.MaxUSD)
	}
	return m
}

// stored returns when an event was stored, by Redis' clock as the times of a task; zero if that is not known.
func stored(l desk.Logged) time.Time {
	text, _, _ := strings.Cut(l.ID, "-")
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// lastRun returns how long the last run of an ended task took, as its result has it, or else until its task ended.
func lastRun(s tasks.Status) time.Duration {
	return cmp.Or(max(0, s.Ending.Result.Duration), s.Ended.Sub(s.Started))
}

// machineUse says what a run took of its machine.
func machineUse(r agent.Resources) string {
	var parts []string
	if r.CPU >= time.Second {
		parts = append(parts, tasks.Lasted(r.CPU)+" of CPU time")
	}
	if memory := display.Bytes(r.Peak); memory != "" {
		parts = append(parts, memory+" of memory")
	}
	if r.Disk >= 1<<20 {
		parts = append(parts, display.Bytes(r.Disk)+" added to the disk")
	}
	return strings.Join(parts, ", ")
}

// briefRun bounds the runs that are not shown: the task was handed back before anything happened.
const briefRun = time.Second

// attempt is a run of the task on the page.
type attempt struct {
	tasks.Run
	N    int
	Took string // empty while it runs
	Now  bool
}

// attempts returns the runs of a task that did something, the latest first.
func attempts(s tasks.Status) (list []attempt) {
	for i, r := range s.Runs {
		a := attempt{Run: r, N: len(list) + 1}
		last, took := i == len(s.Runs)-1, r.Ended.Sub(r.Started)
		switch {
		case !r.Ended.IsZero():
		case last && !s.Ended.IsZero():
			a.Ended, took = s.Ended, lastRun(s) // as in the head
			a.Why = strings.ToLower(s.Ending.Kind.Info().Title)
		case last:
			a.Now = s.State == string(store.Running)
		}
		a.Why, a.Worker = display.Line(a.Why), display.Line(a.Worker)
		if !a.Ended.IsZero() {
			a.Took = tasks.Lasted(took)
			if took < briefRun && !last {
				continue
			}
		}
		list = append([]attempt{a}, list...)
	}
	return list
}

// egressView is what a page says about the hosts that a run has reached or tried to reach.
type egressView struct {
	Refused []string // sentences
	More    int      // refused hosts that are not in Refused
	Learned string   // the reached hosts as a setting of the repository; empty: not asked for
}

// refusedShown bounds egressView.Refused.
const refusedShown = 10

// newEgressView returns nil if there is nothing to say.
func newEgressView(r *agent.EgressReport) *egressView {
	if r == nil || len(r.Refused) == 0 && !r.Learn {
		return nil
	}
	v := &egressView{More: max(0, len(r.Refused)-refusedShown)}
	for _, one := range r.Refused[:len(r.Refused)-v.More] {
		v.Refused = append(v.Refused, "Tried to reach "+display.Line(one.Host)+", "+display.Line(one.Why)+".")
	}
	if r.Learn && len(r.Reached) > 0 {
		v.Learned = "egress:\n"
		for _, host := range slices.Sorted(slices.Values(r.Reached)) {
			v.Learned += "  - " + strconv.Quote(host) + "\n"
		}
	}
	return v
}

// readMachines looks up the workers of the attempts. Of a worker that is not alive only the ID is known.
func (c *Console) readMachines(ctx context.Context, list []attempt) (machines []store.Worker) {
	alive, err := c.View.Store.Workers.List(ctx)
	if err != nil {
		c.View.Log.Warn("list workers", "err", err)
		return nil
	}
	for _, a := range list {
		same := func(w store.Worker) bool { return w.ID == a.Worker }
		if at := slices.IndexFunc(alive, same); at >= 0 && !slices.ContainsFunc(machines, same) {
			machines = append(machines, alive[at])
		} else if at < 0 && !slices.ContainsFunc(machines, same) {
			machines = append(machines, store.Worker{ID: a.Worker})
		}
	}
	return machines
}
