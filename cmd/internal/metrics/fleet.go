package metrics

import (
	"context"
	"encoding/json"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

// Board is where the fleet's state is read.
type Board interface {
	Counts(ctx context.Context) (store.Counts, error)
	Live(ctx context.Context) ([]store.LiveRecord, error)
	Unposted(ctx context.Context) (store.Unposted, error)
	Workers(ctx context.Context) ([]store.Worker, error)
	Credentials(ctx context.Context) ([]store.Credential, error)
}

// readLimit bounds what a scrape waits for Redis.
const readLimit = 2 * time.Second

// The states of workers.
const (
	ready    = "ready"
	draining = "draining"
	unable   = "unable" // its CLI cannot run
)

// fleet reads the state of the fleet at each scrape. All front doors tell the same.
type fleet struct {
	board Board
	now   func() time.Time

	up, all, tasks, oldest, unposted, unpostedAge, workers, slots, taken, credentials *prometheus.Desc
}

// NewFleet registers the state of the fleet. While Redis does not answer, all that is shown of it is that.
func NewFleet(r prometheus.Registerer, b Board) { r.MustRegister(newFleet(b, time.Now)) }

func newFleet(b Board, now func() time.Time) *fleet {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return &fleet{
		board: b, now: now,
		up:          desc("errand_fleet_up", "1 when the fleet's state could be read from Redis, else 0."),
		all:         desc("errand_tasks", "Tasks that have not ended, as the console and health count them.", "state"),
		tasks:       desc("errand_queue_tasks", "Tasks that wait or run and can be read.", "class", "state"),
		oldest:      desc("errand_queue_oldest_seconds", "How long the task has been due that waits longest; 0: none waits.", "class"),
		unposted:    desc("errand_outbox_endings", "Tasks that have ended and whose final message is not out."),
		unpostedAge: desc("errand_outbox_oldest_seconds", "How long ago the one of them ended that waits longest; 0: none waits."),
		workers:     desc("errand_workers", "Workers that live.", "state"),
		slots:       desc("errand_slots", "Runs that all workers may have at once."),
		taken:       desc("errand_slots_taken", "Runs that they have."),
		credentials: desc("errand_credentials", "Credentials of the workers with which no run starts (held) or succeeds (refused).", "state"),
	}
}

// Describe is the registry's.
func (f *fleet) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{f.up, f.all, f.tasks, f.oldest, f.unposted, f.unpostedAge, f.workers, f.slots, f.taken, f.credentials} {
		ch <- d
	}
}

// Collect is the registry's.
func (f *fleet) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), readLimit)
	defer cancel()
	tell := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	counts, err := f.board.Counts(ctx)
	if err != nil {
		tell(f.up, 0)
		return
	}
	live, err := f.board.Live(ctx)
	if err != nil {
		tell(f.up, 0)
		return
	}
	unposted, err := f.board.Unposted(ctx)
	if err != nil {
		tell(f.up, 0)
		return
	}
	workers, err := f.board.Workers(ctx)
	if err != nil {
		tell(f.up, 0)
		return
	}
	credentials, err := f.board.Credentials(ctx)
	if err != nil {
		tell(f.up, 0)
		return
	}
	tell(f.up, 1)
	f.health(store.InUse(credentials, workers), tell)
	tell(f.all, float64(counts.Waiting), string(store.Waiting))
	tell(f.all, float64(counts.Running), string(store.Running))
	tell(f.all, float64(counts.Absorbed), string(store.Absorbed))
	f.queues(live, tell)
	f.staff(workers, tell)
	tell(f.unposted, float64(unposted.Endings))
	tell(f.unpostedAge, f.age(unposted.Oldest))
}

// gauge tells a value.
type gauge func(d *prometheus.Desc, v float64, labels ...string)

// queues tells of the tasks of each class, also where there are none.
func (f *fleet) queues(live []store.LiveRecord, tell gauge) {
	for _, class := range tasks.Classes {
		counts, oldest := map[store.State]int{}, time.Time{}
		for _, rec := range live {
			if rec.Class != class {
				continue
			}
			counts[rec.State]++
			if due := rec.Due(); rec.State == store.Waiting && (oldest.IsZero() || due.Before(oldest)) {
				oldest = due
			}
		}
		for _, state := range []store.State{store.Waiting, store.Running} {
			tell(f.tasks, float64(counts[state]), class, string(state))
		}
		tell(f.oldest, f.age(oldest), class)
	}
}

// staff tells of the workers.
func (f *fleet) staff(workers []store.Worker, tell gauge) {
	states, slots, taken := map[string]int{ready: 0, draining: 0, unable: 0}, 0, 0
	for _, w := range workers {
		states[stateOf(w)]++
		slots, taken = slots+w.Slots, taken+w.Running
	}
	for state, n := range states {
		tell(f.workers, float64(n), state)
	}
	tell(f.slots, float64(slots))
	tell(f.taken, float64(taken))
}

// health tells of the credentials that need somebody.
func (f *fleet) health(credentials []store.Credential, tell gauge) {
	held, refused := 0, 0
	for _, c := range credentials {
		switch {
		case c.Refused != "":
			refused++
		case c.Until.After(f.now()):
			held++
		}
	}
	tell(f.credentials, float64(held), "held")
	tell(f.credentials, float64(refused), "refused")
}

func stateOf(w store.Worker) string {
	var cli agent.Health
	switch {
	case w.Draining:
		return draining
	case json.Unmarshal(w.Health, &cli) != nil || !cli.OK:
		return unable
	}
	return ready
}

// age is how long ago that was, in seconds; 0 for what was not, or will be.
func (f *fleet) age(at time.Time) float64 {
	if at.IsZero() {
		return 0
	}
	return max(f.now().Sub(at), 0).Seconds()
}
