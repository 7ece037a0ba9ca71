package agent

import (
	"time"

	"github.com/errand-fleet/errand/agent/internal/session"
)

// checkpoints hands out the conversation while the run lives. Its cost is that before the run: the CLI saves the cost only when it exits, and
// the CLI that resumes the conversation counts on from there.
func (l *live) checkpoints(d session.Dirs, id string) {
	if l.spec.Checkpoint == nil || l.spec.CheckpointEvery <= 0 {
		return
	}
	tick := time.NewTicker(l.spec.CheckpointEvery)
	defer tick.Stop()
	for {
		select {
		case <-l.ctx.Done():
			return
		case <-tick.C:
		}
		s := Session{ID: id, Data: d.Save(id)}
		if before := l.resume; before != nil {
			s.CostUSD, s.Usage = before.CostUSD, before.Usage
		}
		if s.Data != nil && l.ctx.Err() == nil {
			l.spec.Checkpoint(l.ctx, s)
		}
	}
}
