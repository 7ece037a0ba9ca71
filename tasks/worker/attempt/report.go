package attempt

import (
	"context"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
)

// pendingReport is a report that may still be opening, so that the run does not wait for the source. A nil
// pendingReport is a report that was never opened.
type pendingReport struct {
	done   chan struct{}
	cancel context.CancelFunc
	report tasks.Report // set before done is closed; nil if it could not be opened
}

// openReport opens the task's report in the background. The run continues if that fails; posting the final message
// opens it again.
func (p *Processor) openReport(r *run, j job) *pendingReport {
	ctx, cancel := context.WithCancel(r.Life)
	o := &pendingReport{done: make(chan struct{}), cancel: cancel}
	go func() {
		defer close(o.done)
		report, err := j.source.Open(ctx, j.task)
		if err != nil {
			p.Log.Warn("open report", "run", j.task.ID, "source", j.task.Source, "err", err)
			return
		}
		o.report = report
	}()
	return o
}

// Update passes an event to the report if it is open.
func (o *pendingReport) Update(e agent.Event) {
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

// get waits for the report, which takes a few bounded requests of the source. It returns nil if the report could not
// be opened.
func (o *pendingReport) get() tasks.Report {
	if o == nil {
		return nil
	}
	<-o.done
	return o.report
}

// stop stops the report's background work and waits for it.
func (o *pendingReport) stop() {
	if o != nil {
		o.cancel()
		<-o.done
	}
}
