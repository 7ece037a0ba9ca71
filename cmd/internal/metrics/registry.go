// Package metrics counts what a process of the fleet does and shows it to Prometheus. What is counted, and what to make of it, is in
// docs/operations.md.
//
// It promises that labels are bounded: no label holds an ID, a person, a thread or anything else that grows with use. Everything registers
// with a registry that the caller makes, so that several systems can live in one process; everything is safe for concurrent use, and what
// counts never waits.
package metrics

import (
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// NewRegistry has what every process tells of itself: its version, and what the Go runtime and the operating system count.
func NewRegistry(version string) *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	promauto.With(r).NewGaugeVec(prometheus.GaugeOpts{
		Name: "errand_build_info", Help: "Always 1, with the version of errand.",
	}, []string{"version"}).WithLabelValues(version).Set(1)
	return r
}

// scrapes is how many scrapes are answered at once: some of them ask Redis.
const scrapes = 4

// Handler shows a registry. What cannot be read just now is left out, and the rest is shown.
func Handler(r *prometheus.Registry, log *slog.Logger) http.Handler {
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn), ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: scrapes,
	})
}
