package metrics

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"golang.org/x/sys/unix"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

// FleetReader reads the state of the fleet.
type FleetReader interface {
	Counts(ctx context.Context) (store.Counts, error)
	Live(ctx context.Context) ([]store.LiveRecord, error)
	Unposted(ctx context.Context) (store.Unposted, error)
	Workers(ctx context.Context) ([]store.Worker, error)
	Credentials(ctx context.Context) ([]store.Credential, error)
}

// readLimit bounds how long a scrape waits for Redis.
const readLimit = 2 * time.Second

// States of workers.
const (
	ready    = "ready"
	draining = "draining"
	unable   = "unable" // its CLI cannot run
)

// fleet reads the state of the fleet at each scrape. All front doors report the same state.
type fleet struct {
	reader FleetReader
	now    func() time.Time
	descs  []*prometheus.Desc

	up, all, tasks, oldest, unposted, unpostedAge, workers, slots, taken, credentials *prometheus.Desc
}

// NewFleet registers the state of the fleet. While Redis does not answer, only errand_fleet_up is reported.
func NewFleet(r prometheus.Registerer, reader FleetReader) {
	r.MustRegister(newFleet(reader, time.Now))
}

func newFleet(reader FleetReader, now func() time.Time) *fleet {
	f := &fleet{reader: reader, now: now}
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		f.descs = append(f.descs, prometheus.NewDesc(name, help, labels, nil))
		return f.descs[len(f.descs)-1]
	}
	f.up = desc("errand_fleet_up", "1 if the state of the fleet could be read from Redis, otherwise 0.")
	f.all = desc("errand_tasks", "Tasks that have not ended, as the console and the health count them.", "state")
	f.tasks = desc("errand_queue_tasks", "Waiting and running tasks whose records can be read.", "class", "state")
	f.oldest = desc("errand_queue_oldest_seconds", "Age of the oldest waiting task in seconds, since it was due; 0 if no task is waiting.", "class")
	f.unposted = desc("errand_outbox_endings", "Ended tasks whose final message is not posted.")
	f.unpostedAge = desc("errand_outbox_oldest_seconds", "Time since the end of the oldest task whose final message is not posted; 0 if there is none.")
	f.workers = desc("errand_workers", "Live workers.", "state")
	f.slots = desc("errand_slots", "Slots for runs on all workers.")
	f.taken = desc("errand_slots_taken", "Slots in use.")
	f.credentials = desc("errand_credentials", "Worker credentials with which no run starts (held) or succeeds (refused).", "state")
	return f
}

// Describe implements prometheus.Collector.
func (f *fleet) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range f.descs {
		ch <- d
	}
}

// gauge reports a value.
type gauge func(d *prometheus.Desc, v float64, labels ...string)

// Collect implements prometheus.Collector.
func (f *fleet) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), readLimit)
	defer cancel()
	report := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	if f.collect(ctx, report) != nil {
		report(f.up, 0)
	}
}

// collect reads everything before it reports anything.
func (f *fleet) collect(ctx context.Context, report gauge) error {
	counts, err := f.reader.Counts(ctx)
	if err != nil {
		return err
	}
	live, err := f.reader.Live(ctx)
	if err != nil {
		return err
	}
	unposted, err := f.reader.Unposted(ctx)
	if err != nil {
		return err
	}
	workers, err := f.reader.Workers(ctx)
	if err != nil {
		return err
	}
	credentials, err := f.reader.Credentials(ctx)
	if err != nil {
		return err
	}
	report(f.up, 1)
	report(f.all, float64(counts.Waiting), string(store.Waiting))
	report(f.all, float64(counts.Running), string(store.Running))
	report(f.all, float64(counts.Absorbed), string(store.Absorbed))
	report(f.unposted, float64(unposted.Endings))
	report(f.unpostedAge, f.age(unposted.Oldest))
	f.reportCredentials(store.InUse(credentials, workers), report)
	f.reportQueues(live, report)
	f.reportWorkers(workers, report)
	return nil
}

// reportQueues reports the tasks of each class, including classes without any.
func (f *fleet) reportQueues(live []store.LiveRecord, report gauge) {
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
			report(f.tasks, float64(counts[state]), class, string(state))
		}
		report(f.oldest, f.age(oldest), class)
	}
}

func (f *fleet) reportWorkers(workers []store.Worker, report gauge) {
	states, slots, taken := map[string]int{ready: 0, draining: 0, unable: 0}, 0, 0
	for _, w := range workers {
		states[workerState(w)]++
		slots, taken = slots+w.Slots, taken+w.Running
	}
	for state, n := range states {
		report(f.workers, float64(n), state)
	}
	report(f.slots, float64(slots))
	report(f.taken, float64(taken))
}

func (f *fleet) reportCredentials(credentials []store.Credential, report gauge) {
	held, refused := 0, 0
	for _, c := range credentials {
		switch {
		case c.Refused != "":
			refused++
		case c.Until.After(f.now()):
			held++
		}
	}
	report(f.credentials, float64(held), "held")
	report(f.credentials, float64(refused), "refused")
}

func workerState(w store.Worker) string {
	var cli agent.Health
	switch {
	case w.Draining:
		return draining
	case json.Unmarshal(w.Health, &cli) != nil || !cli.OK:
		return unable
	}
	return ready
}

// age returns the seconds since a time; 0 for the zero time and for the future.
func (f *fleet) age(at time.Time) float64 {
	if at.IsZero() {
		return 0
	}
	return max(f.now().Sub(at), 0).Seconds()
}

// disk reads the free space of the disk of a directory at each scrape.
type disk struct {
	dir        string
	free, size *prometheus.Desc
}

// NewDisk registers the disk of a worker's state directory. Nothing is reported while the directory does not exist.
func NewDisk(r prometheus.Registerer, dir string) {
	r.MustRegister(&disk{
		dir:  dir,
		free: prometheus.NewDesc("errand_disk_free_bytes", "Free space for errand on the disk of the state directory.", nil, nil),
		size: prometheus.NewDesc("errand_disk_size_bytes", "Size of the disk of the state directory.", nil, nil),
	})
}

// Describe implements prometheus.Collector.
func (d *disk) Describe(ch chan<- *prometheus.Desc) { ch <- d.free; ch <- d.size }

// Collect implements prometheus.Collector.
func (d *disk) Collect(ch chan<- prometheus.Metric) {
	var s unix.Statfs_t
	if unix.Statfs(d.dir, &s) != nil {
		return
	}
	block := float64(s.Bsize)
	ch <- prometheus.MustNewConstMetric(d.free, prometheus.GaugeValue, float64(s.Bavail)*block)
	ch <- prometheus.MustNewConstMetric(d.size, prometheus.GaugeValue, float64(s.Blocks)*block)
}

// Services counts requests to Slack and GitHub.
type Services struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

// NewServices registers the metrics of services.
func NewServices(r prometheus.Registerer) *Services {
	f := promauto.With(r)
	return &Services{
		requests: f.NewCounterVec(prometheus.CounterOpts{
			Name: "errand_service_requests_total", Help: "Requests to Slack and GitHub by the class of the response; limited: refused by a rate limit, failed: no response.",
		}, []string{"service", "result"}),
		duration: f.NewHistogramVec(prometheus.HistogramOpts{
			Name: "errand_service_request_duration_seconds", Help: "Time until the header of the response arrived, or the request failed.",
			Buckets: []float64{.05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"service"}),
	}
}

// Transport wraps a transport and counts the requests to a service.
func (m *Services) Transport(service string, next http.RoundTripper) http.RoundTripper {
	m.requests.WithLabelValues(service, limited)
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
	t.meter.duration.WithLabelValues(t.service).Observe(time.Since(start).Seconds())
	t.meter.requests.WithLabelValues(t.service, result(resp, err)).Inc()
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
		resp.StatusCode == http.StatusForbidden && (resp.Header.Get("Retry-After") != "" || resp.Header.Get("X-RateLimit-Remaining") == "0"):
		return limited
	}
	return strconv.Itoa(resp.StatusCode/100) + "xx"
}
