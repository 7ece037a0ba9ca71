package chat

import (
	"context"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
)

// Open gives a report that has nothing to do.
func (s *Source) Open(context.Context, tasks.Task) (tasks.Report, error) { return report{}, nil }

// report posts nothing, and that is right: a chat has no place of its own where an answer would have to be put. The run's events
// and the ending are in the store, and whoever wants them reads them there, at once or tomorrow, from any front door: the stream
// of /api/chat, the console, the command line. There is nobody to tell who would not ask, and nothing that could be told twice.
type report struct{}

// Update does nothing: the worker has stored the event already.
func (report) Update(agent.Event) {}

// Close does nothing: the ending was stored before it is called.
func (report) Close(context.Context, tasks.Ending) error { return nil }

// Say does nothing, likewise.
func (s *Source) Say(context.Context, tasks.Task, string) error { return nil }

// Ask does nothing: a question is among the events as well, and is answered through the API or in the console.
func (s *Source) Ask(context.Context, tasks.Task, tasks.Question) error { return nil }
