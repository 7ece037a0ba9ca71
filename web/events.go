package web

import (
	"cmp"
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/errand-fleet/errand/internal/sse"
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
	id, ok := h.known(w, r)
	if !ok {
		return
	}
	out := sse.New(w)
	if r.Method == http.MethodHead {
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(h.life, cancel)()
	defer out.KeepAlive(h.cfg.Heartbeat, cancel)()
	h.follow(ctx, out, id, after)
}

// known is the path's task, without what a stream of hours would keep of it.
func (h *Handler) known(w http.ResponseWriter, r *http.Request) (id string, ok bool) {
	_, ok = h.ask(w, r, h.cfg.Desk.Status)
	return r.PathValue("id"), ok
}

// follow writes a task's events until it has ended, the reader is gone, or the store cannot be read. It does so on the goroutine that the
// server has for the request: pages may be many, and what each of them keeps is mostly stacks. Events go out as the worker has written
// them, which takes no stack for their parts.
func (h *Handler) follow(ctx context.Context, out *sse.Stream, id, after string) {
	for e, err := range h.cfg.Store.Follow(ctx, id, after) {
		if err != nil {
			if ctx.Err() == nil {
				h.log.Warn("follow task", "run", id, "err", err)
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
	h.end(ctx, out, id, after)
}

// end says how the task ended, unless it has been let run again already: the reader then comes back for that.
func (h *Handler) end(ctx context.Context, out *sse.Stream, id, event string) {
	if s, err := h.cfg.Desk.Status(ctx, id); err == nil && s.Ending != nil {
		out.Send(event, "end", show(s))
	}
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
