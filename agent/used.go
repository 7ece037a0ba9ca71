package agent

import (
	"context"
	"errors"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// usedEvery is how often the CLI is asked what its run has used up so far. It says so by itself at the end of a turn only, which may be hours
// away.
const usedEvery = 15 * time.Second

// used asks the CLI what it has used up, as long as it works: the stream tells of its answers. A CLI that does not know the question is not
// asked again.
func (l *live) used(ctx context.Context) {
	tick := time.NewTicker(l.r.usedEvery)
	defer tick.Stop()
	var active time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := l.stream.Clock().Active
		if now.Equal(active) {
			continue
		}
		active = now
		if refused := l.askUsed(ctx); refused {
			return
		}
	}
}

func (l *live) askUsed(ctx context.Context) (refused bool) {
	ctx, cancel := context.WithTimeout(ctx, l.r.pingLimit) // a CLI that hangs is the watchdog's
	defer cancel()
	_, err := l.control.Request(ctx, map[string]any{"subtype": "get_usage"})
	_, refused = errors.AsType[*controlError](err)
	return refused
}

// counted handles the answer to get_usage (claude-cli.md §5); answers to anything else have no session.
func (s *stream) counted(answer jsontext.Value) {
	var u struct {
		Session struct {
			CostUSD float64              `json:"total_cost_usd"`
			Models  map[string]wireUsage `json:"model_usage"`
		} `json:"session"`
	}
	if json.Unmarshal(answer, &u, lenient) == nil {
		s.spent(u.Session.CostUSD, u.Session.Models)
	}
}

// spent tells what the run has used up, when that is news: by the gateway, or else by the CLI's word.
func (s *stream) spent(usd float64, models map[string]wireUsage) {
	if len(models) == 0 {
		return
	}
	usd, usage := s.resume.own(sane(usd, models))
	if api := s.gate.Seen(); api != nil {
		usd, usage = api.CostUSD, api.Usage
	}
	if usd == s.usd && usage == s.usage {
		return
	}
	s.usd, s.usage = usd, usage
	s.event(Event{Kind: Used, CostUSD: usd, Usage: &usage})
}

// maxClaim bounds in US dollars what a conversation can have cost by the CLI's word, and maxTokens what it can have used of each kind. A tool may
// speak in the CLI's place.
const (
	maxClaim  = 10_000
	maxTokens = 1e12
)

// sane is what all models have used and cost by the CLI's word, as far as that can be.
func sane(usd float64, models map[string]wireUsage) (float64, Usage) {
	within := func(v float64) int64 { return int64(min(max(v, 0), maxTokens)) }
	var sum Usage
	for _, u := range models {
		sum = sum.Plus(Usage{Input: within(u.Input), Output: within(u.Output), CacheRead: within(u.CacheRead), CacheCreation: within(u.CacheCreation)})
	}
	return min(max(usd, 0), maxClaim), sum
}

// settle says what the run has cost, and its conversation in all: by what its gateway saw, or else by the CLI's word, which is otherwise only
// compared.
func (l *live) settle(res *Result) {
	var claimed wireResult
	if last := l.stream.facts.Last; last != nil {
		claimed = *last
	}
	usd, usage := sane(claimed.CostUSD, claimed.ModelUsage)
	own, ownUsage := l.resume.own(usd, usage)
	if res.API == nil {
		if usd != claimed.CostUSD {
			l.doubt(claimed.CostUSD, usd)
		}
		res.CostUSD, res.Usage, res.Session.CostUSD, res.Session.Usage = own, ownUsage, usd, usage
		if l.resume != nil && res.Turns == 0 && usd == 0 { // no result: what the conversation had cost before is not forgotten
			res.CostUSD, res.Usage, res.Session.CostUSD, res.Session.Usage = 0, Usage{}, l.resume.CostUSD, l.resume.Usage
		}
		return
	}
	res.CostUSD, res.Usage = res.API.CostUSD, res.API.Usage
	if claimed.CostUSD < 0 || own > res.CostUSD*1.01+0.0001 {
		l.doubt(claimed.CostUSD, res.CostUSD)
	}
	res.Session.CostUSD, res.Session.Usage = res.CostUSD, res.Usage
	if l.resume != nil {
		res.Session.CostUSD += l.resume.CostUSD
		res.Session.Usage = res.Session.Usage.Plus(l.resume.Usage)
	}
}

// doubt notes a cost that the CLI has claimed and that does not count.
func (l *live) doubt(claimed, counted float64) {
	l.log.Note(time.Now(), "! the CLI says that this has cost $%g; $%.4f counts", claimed, counted)
	l.r.log.Warn("the CLI claims a cost that cannot be", "run", l.spec.ID, "claimed", claimed, "counted", counted)
}

// own is a run's share of what its conversation has used up, when it goes on with s: the CLI counts on from there, unless it had nothing to
// count on from. All is its own without s.
func (s *Session) own(usd float64, u Usage) (float64, Usage) {
	if s == nil || usd < s.CostUSD {
		return usd, u
	}
	return usd - s.CostUSD, u.Minus(s.Usage)
}
