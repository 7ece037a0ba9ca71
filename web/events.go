package web

import (
	"cmp"
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/errand-fleet/errand/internal/sse"
	"github.com/errand-fleet/errand/tasks"
)

// events streams what a run does: one message per event, each with the ID to go on from, and "end" with the task as it ended. A
// stream that ends without "end" was interrupted, and a browser comes back by itself.
func (h *Handler) events(w http.ResponseWriter, r *http.Request) {
	// The header is younger than the query: a browser that comes back asks the same URL again.
	after := cmp.Or(r.Header.Get("Last-Event-ID"), r.URL.Query().Get("after"))
	if !eventID(after) {
		h.fail(w, r, problem{http.StatusBadRequest, "Invalid query", "Go on after the id of an event, such as 1700000000000-0."})
		return
	}
	s, ok := h.ask(w, r, h.cfg.Desk.Status)
	if !ok {
		return
	}
	out := sse.New(w)
	if r.Method == http.MethodHead {
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	beat := time.NewTicker(h.cfg.Heartbeat)
	defer beat.Stop()
	events := h.follow(ctx, s.Task.ID, after)
	for out.Err() == nil {
		select {
		case <-ctx.Done():
			return
		case <-h.stop:
			return
		case <-beat.C:
			out.Heartbeat()
		case l, more := <-events:
			switch {
			case !more:
				return
			case l.End:
				h.end(ctx, out, s.Task.ID, l.ID)
				return
			}
			out.Send(l.ID, "", l.Event)
		}
	}
}

// end says how the task ended, unless it has been let run again already: the reader then comes back for that.
func (h *Handler) end(ctx context.Context, out *sse.Stream, id, event string) {
	if s, err := h.cfg.Desk.Status(ctx, id); err == nil && s.Ending != nil {
		out.Send(event, "end", show(s))
	}
}

// follow reads a task's events on a goroutine of its own, for a reader of the store notices the end of ctx only after a while. The
// last one has End set; without it the store could not be read.
func (h *Handler) follow(ctx context.Context, id, after string) <-chan tasks.Logged {
	events := make(chan tasks.Logged)
	go func() {
		defer close(events)
		last := tasks.Logged{ID: after, End: true} // of a task that had ended, with nothing left to tell
		for l, err := range h.cfg.Desk.Follow(ctx, id, after) {
			if err != nil {
				if ctx.Err() == nil {
					h.log.Warn("follow task", "run", id, "err", err)
				}
				return
			}
			last.ID = l.ID
			if l.End {
				break
			}
			select {
			case events <- l:
			case <-ctx.Done():
				return
			}
		}
		select {
		case events <- last:
		case <-ctx.Done():
		}
	}()
	return events
}

// eventID reports whether s may be an event's ID: it comes from outside.
func eventID(s string) bool {
	if s == "" || s == "0" {
		return true
	}
	ms, seq, _ := strings.Cut(s, "-")
	_, err1 := strconv.ParseUint(ms, 10, 64)
	_, err2 := strconv.ParseUint(seq, 10, 64)
	return err1 == nil && err2 == nil
}
