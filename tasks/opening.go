package tasks

import (
	"context"

	"github.com/errand-fleet/errand/agent"
)

// opening is a report on its way: the run does not wait for the source's answer. A nil opening is one that never began.
type opening struct {
	done   chan struct{}
	cancel context.CancelFunc
	report Report // set before done is closed; nil when it could not be opened
}

// open begins the task's report. A run goes on without one; the final message opens it again.
func (w *Worker) open(r *run, s Source, t Task) *opening {
	ctx, cancel := context.WithCancel(r.life)
	o := &opening{done: make(chan struct{}), cancel: cancel}
	r.told = o
	go func() {
		defer close(o.done)
		report, err := s.Open(ctx, t)
		if err != nil {
			w.log.Warn("open report", "run", t.ID, "source", t.Source, "err", err)
			return
		}
		o.report = report
	}()
	return o
}

// Update hands an event to the report, if it is there by now.
func (o *opening) Update(e agent.Event) {
	if o == nil {
		return
	}
	select {
	case <-o.done:
		if o.report != nil {
			o.report.Update(e)
		}
	default:
	}
}

// get waits for the report, which takes a few bounded calls of the source's; nil when there is none.
func (o *opening) get() Report {
	if o == nil {
		return nil
	}
	<-o.done
	return o.report
}

// leave ends what the report started and returns when nothing of it is under way.
func (o *opening) leave() {
	if o != nil {
		o.cancel()
		<-o.done
	}
}
