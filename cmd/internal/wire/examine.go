package wire

import (
	"context"
	"sync"

	"github.com/errand-fleet/errand/internal/doctor"
	"github.com/errand-fleet/errand/store"
)

// diagnoser is a source that can check how its service is set up.
type diagnoser interface {
	Diagnose(ctx context.Context) []doctor.Finding
}

// examine checks the services of all sources concurrently, so that the slowest one determines the time.
func (p *Parts) examine(ctx context.Context) (list []store.Finding) {
	found := make([][]doctor.Finding, len(p.Sources))
	var all sync.WaitGroup
	for i, s := range p.Sources {
		if s, ok := s.(diagnoser); ok {
			all.Go(func() { found[i] = s.Diagnose(ctx) })
		}
	}
	all.Wait()
	for _, findings := range found {
		for _, c := range findings {
			list = append(list, finding(c))
		}
	}
	return list
}

// finding converts a source's finding; if all is well it has no severity.
func finding(c doctor.Finding) store.Finding {
	f := store.Finding{What: c.What, Why: c.Why, Remedy: c.Remedy}
	switch {
	case c.Fatal:
		f.Severity = store.Fatal
	case c.Why != "":
		f.Severity = store.Warning
	}
	return f
}
