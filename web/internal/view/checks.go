package view

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/display"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks/capacity"
	"github.com/errand-fleet/errand/tasks/desk"
)

// Good is the severity of a check that found no problem.
const Good store.Severity = "ok"

// Check is the result of one check: what was found, why it matters and how to fix it.
type Check = store.Finding

// checklist collects checks.
type checklist []Check

func (l *checklist) add(level store.Severity, what, why, remedy string) {
	*l = append(*l, Check{Severity: level, What: what, Why: why, Remedy: remedy})
}

// What people's rights protect, with a sandbox and without one. docs/security.md says the same.
const (
	rightsSandboxed   = "A run reads the repositories of its task and no others, so it reads what its asker may read."
	rightsUnsandboxed = "Rights decide only whose runs execute commands: people who may not read every repository " +
		"under repositories: get runs that only read, but the code of each repository reaches all others."
)

// checkWorker checks a worker by its report. sources are those of all workers.
func checkWorker(w store.Worker, sources []string) []Check {
	var list checklist
	c, err := capacity.ReadHealth(w.Health)
	switch {
	case err != nil:
		list.add(store.Fatal, "the report on its CLI cannot be read", err.Error(),
			"Run the same version of errand everywhere.")
	case !c.OK:
		list.add(store.Fatal, "it cannot run tasks: "+c.Problem,
			"Tasks go to other workers, or wait for one.", c.Remedy)
	case w.Draining:
		list.add(store.Note, "it is shutting down", "It takes no more tasks and hands back the running ones.", "")
	case w.Cordon != nil:
		list.add(store.Warning, "it takes no tasks: "+capacity.CordonedBy(*w.Cordon),
			"Its running tasks continue. Tasks go to other workers, or wait for one.",
			"Uncordon it on the page Fleet, or with `enqueue uncordon`.")
	default:
		list.add(Good, "it takes tasks", "", "")
	}
	for _, source := range sources {
		if !capacity.Serves(w, source) {
			list.add(store.Note, "it runs no tasks of "+source,
				"It is not set up for "+source+". It hands these tasks to other workers.", "")
		}
	}
	if c.Version != "" {
		list.add(Good, "the CLI is version "+c.Version, c.Path, "")
	}
	if c.LoggedIn {
		list.add(Good, "the CLI has a credential ("+c.Method+")", "`worker check-model` tries it with a small run.", "")
	}
	if filepath.IsAbs(c.Keeper) {
		list.add(Good, "the keeper of each run is a separate program", c.Keeper, "")
	}
	switch what := "the posture of runs is: " + string(c.Posture); c.Posture {
	case "":
	case agent.Shared:
		list.add(store.Note, what, c.Posture.Protects()+" "+rightsUnsandboxed,
			"docs/security.md compares the postures and says what each needs.")
	default:
		list.add(Good, what, c.Posture.Protects()+" "+rightsSandboxed, "")
	}
	if c.Gateway {
		list.add(Good, "runs cannot read the model credential", "", "")
	}
	if c.Private {
		list.add(Good, "runs cannot read the worker's memory and environment", "", "")
	}
	for _, notice := range c.Notices {
		list.add(store.Warning, notice, "", "")
	}
	return WorstFirst(append(list, w.Notices...))
}

// WorstFirst gives findings without a severity the severity Good, and sorts them by severity.
func WorstFirst(list []Check) []Check {
	list = slices.Clone(list)
	for i := range list {
		list[i].Severity = cmp.Or(list[i].Severity, Good)
	}
	order := []store.Severity{store.Fatal, store.Warning, store.Note, Good}
	slices.SortStableFunc(list, func(a, b Check) int {
		return cmp.Compare(slices.Index(order, a.Severity), slices.Index(order, b.Severity))
	})
	return list
}

// check checks the sources, Redis and the credentials.
func (f Fleet) check(now time.Time) []Check {
	var list checklist
	for _, s := range f.Sources {
		switch {
		case s.Problem != "":
			list.add(store.Fatal, "no events arrive from "+s.Name, s.Problem,
				"Check its token and settings, and the log of the front door.")
		case s.Last.IsZero():
			list.add(Good, s.Name+": this front door has received no event yet", "", "")
		default:
			list.add(Good, s.Name+": the last event arrived at "+Time(s.Last), "", "")
		}
	}
	list = append(list, f.notices...)
	if f.Redis != "ok" {
		list.add(store.Fatal, f.Problem, f.Redis, f.remedy)
		return WorstFirst(list)
	}
	list.add(Good, "Redis answers", "", "")
	list = append(list, f.Findings...)
	if len(f.Workers) == 0 {
		list.add(store.Fatal, "no worker is alive", "Tasks wait until one starts.",
			"Start a worker with the same REDIS_URL.")
	}
	list = append(list, f.checkPools()...)
	for _, source := range slices.Sorted(maps.Keys(f.unserved)) {
		list.add(store.Fatal, fmt.Sprintf("no worker is set up for %s; waiting tasks: %d", source, f.unserved[source]),
			"These tasks wait until one is.",
			"Give the workers the settings of "+source+", as the front door has them.")
	}
	for _, q := range f.Queues {
		if q.Pool == "" && q.Paused != nil {
			list.add(store.Warning, capacity.WhyPaused(q.Class, *q.Paused),
				"Its tasks have waited since "+Time(q.Paused.Since)+". Running ones continue.",
				"Resume the class on the page Fleet, or with `enqueue resume "+q.Class+"`.")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.cordoned)) {
		list.add(store.Note, name+" is cordoned and has no live worker",
			"Workers that start there take no tasks: "+capacity.CordonedBy(f.cordoned[name])+".",
			"If it does not come back, run `enqueue uncordon "+name+"`.")
	}
	versions := map[string]bool{}
	for _, w := range f.Workers {
		versions[w.Version] = true
	}
	if len(versions) > 1 {
		list.add(store.Note, "workers run different versions: "+strings.Join(slices.Sorted(maps.Keys(versions)), ", "),
			"Two neighbouring releases work together.", "Finish the upgrade (docs/operations.md).")
	}
	if f.unreadable > 0 {
		list.add(store.Warning, fmt.Sprintf("unreadable records of live tasks: %d", f.unreadable),
			"These tasks do not run.", "Their pages say why, and what removes the records.")
	}
	list = append(list, f.checkAnswers(now)...)
	return WorstFirst(append(list, f.checkCredentials(now)...))
}

// checkAnswers reports answers that people do not have.
func (f Fleet) checkAnswers(now time.Time) (list checklist) {
	if waited := now.Sub(f.unposted.Oldest); f.unposted.Endings > 0 && waited > desk.PostingTime {
		list.add(store.Warning, fmt.Sprintf("answers are not posted yet: %d, the oldest for %s", f.unposted.Endings,
			display.Age(waited)),
			"The oldest one: "+cmp.Or(f.unposted.Why, "no worker has tried")+". It is tried for a day.",
			"Mend that, such as by inviting the bot to its channel again. The pages of the tasks have the answers.")
	}
	if n := f.unposted.GivenUp; n > 0 {
		list.add(store.Warning, fmt.Sprintf("answers of the last day that were not delivered: %d", n),
			"The latest one is of task "+f.unposted.LastGivenUp+".",
			"The pages of the tasks have the answers, and why.")
	}
	return list
}

func (f Fleet) checkCredentials(now time.Time) (list checklist) {
	for _, c := range f.Credentials {
		name := "credential " + c.Name
		if c.Refused != "" {
			list.add(store.Fatal, name+": the model refuses it", c.Refused,
				"Set a valid credential, or check its account. The next successful run clears this.")
		}
		switch {
		case c.Until.After(now):
			list.add(store.Fatal, name+": no run starts before "+Time(c.Until), c.Why,
				"Wait, or raise the account's limit (docs/errors.md).")
		case c.Interval > 0:
			list.add(store.Note, fmt.Sprintf("%s: runs start %v apart", name, c.Interval),
				"The model throttles them.", "")
		}
	}
	return list
}

// checkPools reports pools whose tasks do not run although the fleet has workers.
func (f Fleet) checkPools() (list checklist) {
	for _, p := range f.Pools {
		if p.Problem == "" || len(f.Workers) == 0 || len(f.Pools) == 1 {
			continue
		}
		level, why := store.Warning, "No task waits for one now."
		if p.Waiting > 0 {
			level, why = store.Fatal, fmt.Sprintf("Waiting tasks: %d.", p.Waiting)
		}
		remedy := "Start a worker with ERRAND_POOL=" + p.Name +
			", or give its repositories another pool in errand.yaml."
		if p.Workers > 0 {
			remedy = "The checks of its workers say why."
		}
		list.add(level, p.Problem, why, remedy)
	}
	return list
}
