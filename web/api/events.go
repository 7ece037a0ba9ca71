package api

import (
	"cmp"
	"context"
	"net/http"

	"github.com/errand-fleet/errand/internal/sse"
	"github.com/errand-fleet/errand/web/internal/respond"
	"github.com/errand-fleet/errand/web/internal/view"
)

// events streams the events of a run: one message per event, with its ID, and "end" with the task when it has ended. A
// stream that ends without "end" was interrupted; browsers reconnect by themselves.
func (a *API) events(w http.ResponseWriter, r *http.Request) error {
	// The header is newer than the query: a browser that reconnects requests the same URL again.
	after := cmp.Or(r.Header.Get("Last-Event-ID"), r.URL.Query().Get("after"))
	if !view.ValidEventID(after) {
		return respond.BadQuery("after must be the ID of an event, such as 1700000000000-0.")
	}
	id, err := a.exists(r)
	if err != nil {
		return err
	}
	out := sse.New(w)
	if r.Method == http.MethodHead {
		return nil
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(a.Life, cancel)()
	defer out.KeepAlive(a.Heartbeat, cancel)()
	a.follow(ctx, out, id, after)
	return nil
}

// exists returns the ID of the path's task. Its status is dropped here, so that a stream of hours does not keep it in
// memory.
func (a *API) exists(r *http.Request) (id string, err error) {
	_, err = a.View.Task(r)
	return r.PathValue("id"), err
}

// follow writes a task's events until the task has ended, the client is gone or the store cannot be read. It runs on
// the request's goroutine and sends events as the worker stored them, without decoding: there may be many streams, and
// their memory is mostly stacks.
func (a *API) follow(ctx context.Context, out *sse.Stream, id, after string) {
	for e, err := range a.View.Store.Events.Follow(ctx, id, after) {
		if err != nil {
			if ctx.Err() == nil {
				a.View.Log.Warn("follow task", "run", id, "err", err)
			}
			return
		}
		after = e.ID
		if e.End {
			break
		}
		if out.Send(e.ID, "", e.Data); out.Err() != nil {
			return
		}
	}
	a.sendEnd(ctx, out, id, after)
}

// sendEnd sends how the task ended. It sends nothing if the task is already being retried: the client then reconnects.
func (a *API) sendEnd(ctx context.Context, out *sse.Stream, id, event string) {
	if s, err := a.View.Desk.Status(ctx, id); err == nil && s.Ending != nil {
		out.Send(event, "end", view.NewTask(s))
	}
}
