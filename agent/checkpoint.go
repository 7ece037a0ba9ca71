package agent

import "time"

// checkpoints hands out the conversation while the run lives. What it has cost is what it had cost before: the CLI saves that only at
// its end, and the one that resumes it counts on from there.
func (l *live) checkpoints(d runDirs, id string) {
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
		s := Session{ID: id, Data: d.takeSession(id)}
		if before := l.resume; before != nil {
			s.CostUSD, s.Usage = before.CostUSD, before.Usage
		}
		if s.Data != nil && l.ctx.Err() == nil {
			l.spec.Checkpoint(l.ctx, s)
		}
	}
}
