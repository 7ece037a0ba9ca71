package egress

import (
	"slices"

	"github.com/errand-fleet/errand/agent/internal/redact"
	"github.com/errand-fleet/errand/internal/hostlist"
)

// maxHosts bounds each list of a Report, because a run chooses the names.
const maxHosts = 100

// Report lists the hosts that a run has reached or tried to reach. Ports other than the usual ones follow the name.
type Report struct {
	Reached  []string  `json:"reached,omitempty"`
	Refused  []Refusal `json:"refused,omitempty"`
	Refusals int       `json:"refusals,omitempty"` // refused connections and requests
	Learn    bool      `json:"learn,omitempty"`    // Reached is to be shown as a list
}

// Refusal is a host that a run could not reach.
type Refusal struct {
	Host string `json:"host"`
	Why  string `json:"why"` // a clause about the host
}

// The clauses of a Refusal.
const (
	notListed   = "which the egress list does not allow"
	notPublic   = "which has a private address"
	wrongName   = "with another name, an encrypted one or none in the TLS handshake"
	notHostPort = "which is not a host name and port"
)

// Report returns what the run has reached and tried to reach so far, or nil if there was nothing.
func (p *Proxy) Report(r *redact.Redactor) *Report {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.report.Reached) == 0 && p.report.Refusals == 0 {
		return nil
	}
	report := p.report
	report.Reached, report.Refused = slices.Clone(report.Reached), slices.Clone(report.Refused)
	for i := range report.Reached {
		report.Reached[i] = r.String(report.Reached[i])
	}
	for i := range report.Refused {
		report.Refused[i].Host = r.String(report.Refused[i].Host)
	}
	rules := p.rules.Load()
	report.Learn = rules != nil && rules.Mode == hostlist.Learn
	return &report
}

// refused records a refusal, and notes each host once.
func (p *Proxy) refused(host, why string) {
	r := Refusal{redact.Clip(host, 260), why}
	p.mu.Lock()
	p.report.Refusals++
	known := len(p.report.Refused) >= maxHosts || slices.Contains(p.report.Refused, r)
	if !known {
		p.report.Refused = append(p.report.Refused, r)
	}
	p.mu.Unlock()
	if !known {
		p.note("refused a connection to %s, %s", r.Host, r.Why)
	}
}

// reached records a host that answers.
func (p *Proxy) reached(t target) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if name := t.String(); len(p.report.Reached) < maxHosts && !slices.Contains(p.report.Reached, name) {
		p.report.Reached = append(p.report.Reached, name)
	}
}
