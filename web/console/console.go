// Package console serves the pages of the console: tasks, timelines, logs, chat, costs, health, and asynqmon's view of
// the queues.
//
// Text of people and agents is shown as text and never becomes markup; agents' Markdown is rendered without HTML,
// images and local links. Handlers may be used from any number of goroutines; authentication is the caller's.
package console

import (
	"context"
	"net/http"

	"github.com/hibiken/asynq"
	"github.com/hibiken/asynqmon"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/web/internal/respond"
	"github.com/errand-fleet/errand/web/internal/view"
	"github.com/errand-fleet/errand/web/logs"
)

// maxRenders is how many pages of tasks and conversations are rendered at once. Each may take 20 MB, and after a
// restart every open page is requested again.
const maxRenders = 4

// Console is the pages. Create one with New and close it.
type Console struct {
	view    *view.Reader
	logs    *logs.Reader
	out     *respond.Responder
	chat    Chat
	examine func(context.Context) []store.Finding
	queues  *asynqmon.HTTPHandler
	renders chan struct{} // holds one element for each page with a timeline that is being rendered
}

// Config configures the console. View, Logs, Out and Redis are required.
type Config struct {
	View    *view.Reader
	Logs    *logs.Reader
	Out     *respond.Responder
	Chat    Chat
	Examine func(context.Context) []store.Finding // checks the services of the sources; nil if there are none

	Redis          asynq.RedisConnOpt // for asynqmon, which opens its own connections
	QueuesWritable bool               // the pages of the queues may change queues
}

// New returns a console and adds its routes to mux.
func New(cfg Config, mux *http.ServeMux) *Console {
	c := &Console{
		view: cfg.View, logs: cfg.Logs, out: cfg.Out, chat: cfg.Chat, examine: cfg.Examine,
		queues: newQueues(cfg.Redis, cfg.QueuesWritable), renders: make(chan struct{}, maxRenders),
	}
	for pattern, handle := range map[string]func(http.ResponseWriter, *http.Request) error{
		"GET /{$}":                c.listPage,
		"GET /health":             c.healthPage,
		"GET /costs":              c.costsPage,
		"GET /chat":               c.chatPage,
		"POST /chat":              c.postChat,
		"GET /chat/{thread}":      c.chatPage,
		"GET /tasks/{id}":         c.taskPage,
		"GET /tasks/{id}/log":     c.logPage,
		"POST /tasks/{id}/cancel": c.cancelTask,
		"POST /tasks/{id}/retry":  c.retryTask,
		"POST /tasks/{id}/answer": c.answerQuestion,
		"POST /format":            c.formatText,
		"GET /queues/tasks/{id}":  c.redirectToTask,
	} {
		mux.HandleFunc(pattern, cfg.Out.Handle(handle))
	}
	mux.HandleFunc("/queues/", c.serveQueues)
	if cfg.QueuesWritable {
		const active = "POST /queues/api/queues/{queue}/active_tasks"
		mux.HandleFunc(active+"/{id}", cfg.Out.Handle(c.cancelDelivery))
		mux.HandleFunc(active+":batch_cancel", cfg.Out.Handle(refuseBatch))
		mux.HandleFunc(active+":cancel_all", cfg.Out.Handle(refuseBatch))
	}
	return c
}

// Close closes asynqmon's connections to Redis.
func (c *Console) Close() error { return c.queues.Close() }

// renderSlot waits for permission to render a page with a timeline. It fails if the client gives up first. The slot is
// released before the page is sent: clients may read slowly.
func (c *Console) renderSlot(ctx context.Context) (release func(), err error) {
	select {
	case c.renders <- struct{}{}:
		return func() { <-c.renders }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
