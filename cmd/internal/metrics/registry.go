// Package metrics counts what a process of the fleet does, for Prometheus. docs/operations.md lists the metrics and
// what to alert on.
//
// Labels are bounded: none holds an ID, a person, a thread or anything else that grows with use. Metrics are registered
// with a registry of the caller, so that several systems can run in one process. All methods may be called from any
// goroutine, and counting never waits.
package metrics

import (
	"cmp"
	"log/slog"
	"net/http"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// NewRegistry returns a registry with the metrics of every process: its version, and those of the Go runtime and the
// operating system.
func NewRegistry(version string) *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	promauto.With(r).NewGaugeVec(prometheus.GaugeOpts{
		Name: "errand_build_info", Help: "Always 1, with the version of errand.",
	}, []string{"version"}).WithLabelValues(version).Set(1)
	return r
}

// maxScrapes is how many scrapes are answered at once: they read from Redis.
const maxScrapes = 4

// Handler serves a registry. Metrics that cannot be read are left out.
func Handler(r *prometheus.Registry, log *slog.Logger) http.Handler {
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn), ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: maxScrapes,
	})
}

// Values of labels without a name.
const (
	other = "other" // beyond the bound, or not configured
	none  = "none"
)

// firstSeen bounds the values of a label: the first ones are kept, and all others become "other".
type firstSeen struct {
	max int

	mu   sync.Mutex
	seen map[string]bool
}

func newFirstSeen(maximum int) *firstSeen { return &firstSeen{max: maximum, seen: map[string]bool{}} }

func (f *firstSeen) label(name string) string {
	name = cmp.Or(name, none)
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.seen[name] {
		if len(f.seen) >= f.max {
			return other
		}
		f.seen[name] = true
	}
	return name
}

// configured bounds the values of a label to configured ones. Like GitHub it ignores case.
type configured []string

func (c configured) label(name string) string {
	if name == "" {
		return none
	}
	for _, n := range c {
		if strings.EqualFold(n, name) {
			return n
		}
	}
	return other
}
