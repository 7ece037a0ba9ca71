package metrics

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

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
