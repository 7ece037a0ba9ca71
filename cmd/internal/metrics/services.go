package metrics

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Services counts what is asked of other people's services.
type Services struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

// NewServices registers what is counted.
func NewServices(r prometheus.Registerer) *Services {
	f := promauto.With(r)
	return &Services{
		requests: f.NewCounterVec(prometheus.CounterOpts{
			Name: "errand_service_requests_total", Help: "Requests to Slack and GitHub, by the class of the answer; limited: a rate limit, failed: none came.",
		}, []string{"service", "result"}),
		duration: f.NewHistogramVec(prometheus.HistogramOpts{
			Name: "errand_service_request_duration_seconds", Help: "Until the head of the answer was there, or none came.",
			Buckets: []float64{.05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"service"}),
	}
}

// Transport counts what goes to a service.
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
	began := time.Now()
	resp, err := t.next.RoundTrip(r)
	t.meter.duration.WithLabelValues(t.service).Observe(time.Since(began).Seconds())
	t.meter.requests.WithLabelValues(t.service, result(resp, err)).Inc()
	return resp, err
}

// limited is the answer of a service of which we asked too much.
const limited = "limited"

// result is the class of an answer. GitHub says with a 403 as well that it was asked too much.
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
