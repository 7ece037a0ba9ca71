package wire

import (
	"context"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks/slack"
)

// examine asks the services of the sources how they are set up.
func (p *Parts) examine(ctx context.Context) (list []store.Finding) {
	for _, s := range p.Sources {
		if s, ok := s.(*slack.Source); ok {
			for _, c := range s.Examine(ctx) {
				list = append(list, finding(c))
			}
		}
	}
	return list
}

// finding is a check as the doctor tells it; what is well has no severity.
func finding(c slack.Check) store.Finding {
	f := store.Finding{What: c.What, Why: c.Why, Remedy: c.Remedy}
	switch {
	case c.Fatal:
		f.Severity = store.Fatal
	case c.Why != "":
		f.Severity = store.Warning
	}
	return f
}
