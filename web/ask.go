package web

import (
	"context"
	"net/http"

	"github.com/errand-fleet/errand/tasks"
)

// ask puts one question about the path's task to the desk; false when it was answered with an error.
func (h *Handler) ask(
	w http.ResponseWriter, r *http.Request, question func(context.Context, string) (tasks.Status, error),
) (tasks.Status, bool) {
	id, ok := h.id(w, r)
	if !ok {
		return tasks.Status{}, false
	}
	s, err := question(r.Context(), id)
	if err != nil {
		h.refuse(w, r, err)
		return tasks.Status{}, false
	}
	return s, true
}

func (h *Handler) stopTask(ctx context.Context, id string) (tasks.Status, error) {
	return h.cfg.Desk.Cancel(ctx, id, tasks.Actor(ctx))
}

// retryTask lets a task run again, at the cost of whoever gave it. The store keeps who cancels and answers, but not this, so the log does.
func (h *Handler) retryTask(ctx context.Context, id string) (tasks.Status, error) {
	s, err := h.cfg.Desk.Retry(ctx, id)
	if err == nil {
		h.log.Info("retry task", "run", id, "by", tasks.Actor(ctx))
	}
	return s, err
}
