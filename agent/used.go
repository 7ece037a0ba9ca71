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

// spent tells what the run has used up, when that is news.
func (s *stream) spent(usd float64, models map[string]wireUsage) {
	if len(models) == 0 {
		return
	}
	usd, usage := s.resume.own(usd, total(models))
	if usd == s.usd && usage == s.usage {
		return
	}
	s.usd, s.usage = usd, usage
	s.event(Event{Kind: Used, CostUSD: usd, Usage: &usage})
}

// total is what all models have used.
func total(models map[string]wireUsage) (sum Usage) {
	for _, u := range models {
		sum = sum.plus(Usage{int64(u.Input), int64(u.Output), int64(u.CacheRead), int64(u.CacheCreation)})
	}
	return sum
}

// own is a run's share of what its conversation has used up, when it goes on with s: the CLI counts on from there, unless it had nothing to
// count on from. All is its own without s.
func (s *Session) own(usd float64, u Usage) (float64, Usage) {
	if s == nil || usd < s.CostUSD {
		return usd, u
	}
	return usd - s.CostUSD, u.less(s.Usage)
}
