package web

import (
	"fmt"
	"time"

	"github.com/errand-fleet/errand/internal/legible"
	"github.com/errand-fleet/errand/tasks"
)

// meter is how long a run has lasted and what it has used up, so far or in all.
type meter struct {
	Since   time.Time // it runs since then; zero: it does not run
	Elapsed string
	Tokens  string // of the model
	Cost    string
}

func (h *Handler) meter(s tasks.Status, used tasks.Logged) meter {
	var m meter
	usage, usd := used.Event.Usage, used.Event.CostUSD
	switch e := s.Ending; {
	case e != nil && e.Result.Duration > 0:
		m.Elapsed, usage, usd = tasks.Lasted(e.Result.Duration), &e.Result.Usage, e.CostUSD()
	case e == nil && s.State == "running":
		m.Since, m.Elapsed = s.Started, tasks.Lasted(max(0, h.now().Sub(s.Started)))
	}
	if usage != nil {
		if in := usage.Input + usage.CacheRead + usage.CacheCreation; in > 0 {
			m.Tokens = legible.Count(in) + " tokens in, " + legible.Count(usage.Output) + " out"
		}
	}
	switch {
	case usd >= 0.01:
		m.Cost = fmt.Sprintf("$%.2f", usd)
	case usd > 0:
		m.Cost = "under $0.01"
	}
	return m
}
