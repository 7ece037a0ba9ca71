package wire

import (
	"context"
	"sync"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

// examiner is a source that can look how its service is set up.
type examiner interface {
	Examine(ctx context.Context) []tasks.Check
}

// examine asks the services of the sources how they are set up, all at once: one that does not answer keeps nobody waiting twice.
func (p *Parts) examine(ctx context.Context) (list []store.Finding) {
	found := make([][]tasks.Check, len(p.Sources))
	var all sync.WaitGroup
	for i, s := range p.Sources {
		if s, ok := s.(examiner); ok {
			all.Go(func() { found[i] = s.Examine(ctx) })
		}
	}
	all.Wait()
	for _, checks := range found {
		for _, c := range checks {
			list = append(list, finding(c))
		}
	}
	return list
}

// finding is a check as the doctor tells it; what is well has no severity.
func finding(c tasks.Check) store.Finding {
	f := store.Finding{What: c.What, Why: c.Why, Remedy: c.Remedy}
	switch {
	case c.Fatal:
		f.Severity = store.Fatal
	case c.Why != "":
		f.Severity = store.Warning
	}
	return f
}
