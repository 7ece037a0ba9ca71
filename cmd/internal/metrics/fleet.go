package metrics

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/rights"
)

// Fleet is the state of the fleet.
type Fleet struct {
	Counts      store.Counts
	Live        []store.LiveRecord
	Unposted    store.Unposted
	Workers     []store.Worker
	Credentials []store.Credential
	Paused      map[string]store.Halt // by class
	Memory      store.Memory          // of Redis
	Unusable    bool                  // Redis can be read, but no process is ready on it
}

// ReadFleet reads the state of the fleet from the store.
func ReadFleet(ctx context.Context, s *store.Store) (f Fleet, err error) {
	if f.Counts, err = s.Counts(ctx); err != nil {
		return f, err
	}
	if f.Live, err = s.Live(ctx); err != nil {
		return f, err
	}
	if f.Unposted, err = s.Outbox.Backlog(ctx); err != nil {
		return f, err
	}
	if f.Workers, err = s.Workers.List(ctx); err != nil {
		return f, err
	}
	if f.Paused, err = s.Paused.All(ctx); err != nil {
		return f, err
	}
	if f.Credentials, err = s.Credentials.List(ctx); err != nil {
		return f, err
	}
	found, memory, err := s.Doctor.Examine(ctx)
	f.Memory = memory
	f.Unusable = slices.ContainsFunc(found, func(f store.Finding) bool { return f.Severity == store.Fatal })
	return f, err
}

// readLimit bounds how long a scrape waits for Redis.
const readLimit = 2 * time.Second

// States of workers.
const (
	ready    = "ready"
	draining = "draining"
	cordoned = "cordoned"
	unable   = "unable" // it takes no tasks
)

// reportFunc reports the value of a gauge.
type reportFunc func(name string, v float64, labels ...string)

// gauges are gauges that are read together at each scrape. They implement prometheus.Collector.
type gauges struct {
	descs map[string]*prometheus.Desc
	read  func(reportFunc)
}

func newGauges(read func(reportFunc), list ...metric) *gauges {
	g := &gauges{descs: map[string]*prometheus.Desc{}, read: read}
	for _, m := range list {
		g.descs[m.name] = prometheus.NewDesc(m.name, m.help, strings.Fields(m.labels), nil)
	}
	return g
}

// Describe implements prometheus.Collector.
func (g *gauges) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range g.descs {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (g *gauges) Collect(ch chan<- prometheus.Metric) {
	g.read(func(name string, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(g.descs[name], prometheus.GaugeValue, v, labels...)
	})
}

// NewFleet registers the state of the fleet, which is read at each scrape. All front doors report the same state. While
// Redis does not answer, only errand_fleet_up is reported.
func NewFleet(r prometheus.Registerer, p rights.Policy, read func(context.Context) (Fleet, error)) {
	r.MustRegister(newFleet(read, p, time.Now))
}

func newFleet(read func(context.Context) (Fleet, error), p rights.Policy, now func() time.Time) *gauges {
	return newGauges(
		func(report reportFunc) {
			ctx, cancel := context.WithTimeout(context.Background(), readLimit)
			defer cancel()
			f, err := read(ctx)
			if err != nil {
				report("errand_fleet_up", 0)
				return
			}
			up := 1.0
			if f.Unusable {
				up = 0
			}
			report("errand_fleet_up", up)
			f.report(report, now())
			for _, need := range f.needs(p, now()) {
				name := tasks.PoolName(need.pool)
				report("errand_workers_wanted", float64(need.wanted), name)
				for _, class := range tasks.Classes {
					report("errand_queue_startable", float64(need.startable[class]), name, class)
				}
				f.in(need.pool).reportPool(report, name, now())
			}
		},
		fleetMetrics()...,
	)
}

func fleetMetrics() []metric {
	return []metric{
		{name: "errand_fleet_up", help: "1 if Redis answers and can be used, otherwise 0."},
		{
			name: "errand_tasks", help: "Tasks that have not ended, as the console and the health count them.",
			labels: "state",
		},
		{name: "errand_redis_memory_bytes", help: "Memory that Redis uses for its data (used_memory)."},
		{name: "errand_redis_memory_limit_bytes", help: "Redis' setting maxmemory; missing if it is 0."},
		{
			name: "errand_queue_tasks", help: "Waiting and running tasks whose records can be read.",
			labels: "pool class state",
		},
		{
			name: "errand_queue_startable", help: "Waiting tasks that lack nothing but a slot.", labels: "pool class",
		},
		{
			name:   "errand_workers_wanted",
			help:   "Workers that the running and the startable tasks need; for autoscalers.",
			labels: "pool",
		},
		{
			name:   "errand_queue_oldest_seconds",
			help:   "Age of the oldest waiting task in seconds, since it was due; 0 if no task is waiting.",
			labels: "pool class",
		},
		{name: "errand_queue_paused", help: "1 if the class is paused, otherwise 0.", labels: "class"},
		{name: "errand_outbox_endings", help: "Ended tasks whose final message is not posted."},
		{
			name: "errand_answers_undelivered",
			help: "Final messages of the last day that were given up: they are only in the console.",
		},
		{
			name: "errand_outbox_oldest_seconds",
			help: "Time since the end of the oldest task whose final message is not posted; 0 if none exists.",
		},
		{name: "errand_workers", help: "Live workers.", labels: "pool state"},
		{name: "errand_slots", help: "Slots for runs on all workers.", labels: "pool"},
		{name: "errand_slots_taken", help: "Slots in use.", labels: "pool"},
		{
			name: "errand_credentials",
			help: "Worker credentials with which no run starts (held) or succeeds (refused).", labels: "state",
		},
	}
}

func (f Fleet) report(report reportFunc, now time.Time) {
	report("errand_tasks", float64(f.Counts.Waiting), string(store.Waiting))
	report("errand_tasks", float64(f.Counts.Running), string(store.Running))
	report("errand_tasks", float64(f.Counts.Absorbed), string(store.Absorbed))
	if f.Memory.Used > 0 {
		report("errand_redis_memory_bytes", float64(f.Memory.Used))
	}
	if f.Memory.Limit > 0 {
		report("errand_redis_memory_limit_bytes", float64(f.Memory.Limit))
	}
	report("errand_outbox_endings", float64(f.Unposted.Endings))
	report("errand_outbox_oldest_seconds", age(f.Unposted.Oldest, now))
	report("errand_answers_undelivered", float64(f.Unposted.GivenUp))
	for _, class := range tasks.Classes {
		paused := 0.0
		if _, is := f.Paused[class]; is {
			paused = 1
		}
		report("errand_queue_paused", paused, class)
	}
	held, refused := 0, 0
	for _, c := range store.InUse(f.Credentials, f.Workers) {
		switch {
		case c.Refused != "":
			refused++
		case c.Until.After(now):
			held++
		}
	}
	report("errand_credentials", float64(held), "held")
	report("errand_credentials", float64(refused), "refused")
}

// reportPool reports the workers of a pool, of which f is the part, and its tasks of each class, including classes
// without any.
func (f Fleet) reportPool(report reportFunc, pool string, now time.Time) {
	states, slots, taken := map[string]int{ready: 0, draining: 0, cordoned: 0, unable: 0}, 0, 0
	for _, w := range f.Workers {
		states[workerState(w)]++
		slots, taken = slots+w.Slots, taken+w.Running
	}
	for state, n := range states {
		report("errand_workers", float64(n), pool, state)
	}
	report("errand_slots", float64(slots), pool)
	report("errand_slots_taken", float64(taken), pool)
	for _, class := range tasks.Classes {
		counts, oldest := map[store.State]int{}, time.Time{}
		for _, rec := range f.Live {
			if rec.Class != class {
				continue
			}
			counts[rec.State]++
			if due := rec.Due(); rec.State == store.Waiting && (oldest.IsZero() || due.Before(oldest)) {
				oldest = due
			}
		}
		for _, state := range []store.State{store.Waiting, store.Running} {
			report("errand_queue_tasks", float64(counts[state]), pool, class, string(state))
		}
		report("errand_queue_oldest_seconds", age(oldest, now), pool, class)
	}
}

func workerState(w store.Worker) string {
	var cli agent.Health
	switch {
	case w.Draining:
		return draining
	case w.Cordon != nil:
		return cordoned
	case json.Unmarshal(w.Health, &cli) != nil || !cli.OK:
		return unable
	}
	return ready
}

// age returns the seconds since a time; 0 for the zero time and for the future.
func age(at, now time.Time) float64 {
	if at.IsZero() {
		return 0
	}
	return max(now.Sub(at), 0).Seconds()
}

// NewDisk registers the disk of a worker's state directory. Nothing is reported while the directory does not exist.
func NewDisk(r prometheus.Registerer, dir string) {
	r.MustRegister(newGauges(
		func(report reportFunc) {
			var s unix.Statfs_t
			if unix.Statfs(dir, &s) != nil {
				return
			}
			report("errand_disk_free_bytes", float64(s.Bavail)*float64(s.Bsize))
			report("errand_disk_size_bytes", float64(s.Blocks)*float64(s.Bsize))
		},
		metric{name: "errand_disk_free_bytes", help: "Free space for errand on the disk of the state directory."},
		metric{name: "errand_disk_size_bytes", help: "Size of the disk of the state directory."},
	))
}

// Services counts requests to Slack and GitHub.
type Services struct{ meters }

// NewServices registers the metrics of services.
func NewServices(r prometheus.Registerer) *Services {
	return &Services{newMeters(r,
		metric{
			name: "errand_service_requests_total",
			help: "Requests to Slack and GitHub by the class of the response; " +
				"limited: refused by a rate limit, failed: no response.",
			labels: "service result",
		},
		metric{
			name:   "errand_service_request_duration_seconds",
			help:   "Time until the header of the response arrived, or the request failed.",
			labels: "service", buckets: []float64{.05, .1, .25, .5, 1, 2.5, 5, 10},
		},
	)}
}

// Transport wraps a transport and counts the requests to a service.
func (m *Services) Transport(service string, next http.RoundTripper) http.RoundTripper {
	m.add("errand_service_requests_total", 0, service, limited)
	return &transport{service: service, meter: m, next: next}
}

type transport struct {
	service string
	meter   *Services
	next    http.RoundTripper
}

func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	start := time.Now()
	resp, err := t.next.RoundTrip(r)
	t.meter.observe("errand_service_request_duration_seconds", time.Since(start).Seconds(), t.service)
	t.meter.add("errand_service_requests_total", 1, t.service, result(resp, err))
	return resp, err
}

// limited is the result of a request that a rate limit refused.
const limited = "limited"

// result returns the class of a response. GitHub reports its rate limit also with 403.
func result(resp *http.Response, err error) string {
	switch {
	case err != nil:
		return "failed"
	case resp.StatusCode == http.StatusTooManyRequests,
		resp.StatusCode == http.StatusForbidden &&
			(resp.Header.Get("Retry-After") != "" || resp.Header.Get("X-RateLimit-Remaining") == "0"):
		return limited
	}
	return strconv.Itoa(resp.StatusCode/100) + "xx"
}
