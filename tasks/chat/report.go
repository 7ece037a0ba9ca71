package chat

import (
	"context"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
)

// Open returns a report that does nothing.
func (s *Source) Open(context.Context, tasks.Task) (tasks.Report, error) { return report{}, nil }

// report does nothing: a chat has no thread outside errand to post to. The run's events and the ending are in the store, where the stream of
// /api/chat, the console and the command line read them at any time.
type report struct{}

// Update does nothing: the worker has stored the event already.
func (report) Update(agent.Event) {}

// Close does nothing: the ending was stored before it is called.
func (report) Close(context.Context, tasks.Ending) error { return nil }

// Say does nothing: the worker has stored the words already.
func (s *Source) Say(context.Context, tasks.Task, string) error { return nil }

// Ask does nothing: the question is among the events, and is answered through the API or in the console.
func (s *Source) Ask(context.Context, tasks.Task, tasks.Question) error { return nil }
