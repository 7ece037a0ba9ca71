package agent

import (
	"time"

	"github.com/errand-fleet/errand/agent/internal/protocol"
)

// Bounds of what a conversation can have used according to the CLI. A tool may write in place of the CLI.
const (
	maxClaim  = 10_000 // US dollars
	maxTokens = 1e12   // of each kind
)

// plausible returns the usage of all models according to the CLI, within bounds.
func plausible(usd float64, models map[string]protocol.ModelUsage) (float64, Usage) {
	within := func(v float64) int64 { return int64(min(max(v, 0), maxTokens)) }
	var sum Usage
	for _, u := range models {
		sum = sum.Plus(Usage{
			Input: within(u.Input), Output: within(u.Output), CacheRead: within(u.CacheRead),
			CacheCreation: within(u.CacheCreation),
		})
	}
	return min(max(usd, 0), maxClaim), sum
}

// share returns a run's share of the usage of its conversation, which the run continued from s. The CLI continues
// counting from s unless it had nothing to count from. Without s the run has used everything.
func (s *Session) share(usd float64, u Usage) (float64, Usage) {
	if s == nil || usd < s.CostUSD {
		return usd, u
	}
	return usd - s.CostUSD, u.Minus(s.Usage)
}

// setCost sets the cost of the run and of its conversation: as the gateway counted it, or else as the CLI reports it in
// last. With a gateway the CLI's report is only compared.
func (l *liveRun) setCost(res *Result, last *protocol.Result) {
	var claimed protocol.Result
	if last != nil {
		claimed = *last
	}
	var before Session
	if l.resume != nil {
		before = *l.resume
	}
	usd, usage := plausible(claimed.CostUSD, claimed.ModelUsage)
	share, shareUsage := l.resume.share(usd, usage)
	if api := res.API; api != nil {
		res.CostUSD, res.Usage = api.CostUSD, api.Usage
		res.Session.CostUSD, res.Session.Usage = before.CostUSD+api.CostUSD, before.Usage.Plus(api.Usage)
		atListPrices := !l.r.model.Priced() // as the CLI counts
		if claimed.CostUSD < 0 || atListPrices && share > res.CostUSD*1.01+0.0001 {
			l.doubtCost(claimed.CostUSD, res.CostUSD)
		}
		return
	}
	if usd != claimed.CostUSD {
		l.doubtCost(claimed.CostUSD, usd)
	}
	res.CostUSD, res.Usage, res.Session.CostUSD, res.Session.Usage = share, shareUsage, usd, usage
	if l.resume != nil && res.Turns == 0 && usd == 0 { // without a result the conversation keeps its previous cost
		res.CostUSD, res.Usage, res.Session.CostUSD, res.Session.Usage = 0, Usage{}, before.CostUSD, before.Usage
	}
}

// doubtCost notes a cost that the CLI reports and that is not used.
func (l *liveRun) doubtCost(claimed, counted float64) {
	l.log.Note(time.Now(), "! the CLI reports a cost of $%g; $%.4f counts", claimed, counted)
	l.r.log.Warn("the CLI reports an impossible cost", "run", l.spec.ID, "claimed", claimed, "counted", counted)
}
