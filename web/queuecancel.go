package web

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

// maxCancels bounds a list of deliveries to cancel, in bytes.
const maxCancels = 64 << 10

// cancelRoutes put our cancel in the place of asynqmon's, which is told to the workers once and does not say who asks: ours is stored, and
// the task ends with a message.
func (h *Handler) cancelRoutes() {
	const active = "POST /queues/api/queues/{queue}/active_tasks"
	h.mux.HandleFunc(active+"/{id}", h.cancelDelivery)
	h.mux.HandleFunc(active+":batch_cancel", h.cancelDeliveries)
	h.mux.HandleFunc(active+":cancel_all", h.cancelQueue)
}

// cancelDelivery is the Cancel of one delivery.
func (h *Handler) cancelDelivery(w http.ResponseWriter, r *http.Request) {
	delivery, ok := strings.CutSuffix(r.PathValue("id"), ":cancel")
	if !ok {
		h.serveQueues(w, r)
		return
	}
	if err := h.stopDelivery(r, delivery); err != nil {
		h.refuse(w, r, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// cancelDeliveries is the Cancel of those that were ticked.
func (h *Handler) cancelDeliveries(w http.ResponseWriter, r *http.Request) {
	var list struct {
		IDs []string `json:"task_ids"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxCancels)).Decode(&list); err != nil {
		h.fail(w, r, problem{http.StatusBadRequest, "Invalid body", `A list looks like {"task_ids": ["1700000000000000-chat-x"]}.`})
		return
	}
	done, failed := []string{}, []string{}
	for _, id := range list.IDs {
		if err := h.stopDelivery(r, id); err != nil {
			h.log.Warn("cancel task", "run", id, "err", err)
			failed = append(failed, id)
			continue
		}
		done = append(done, id)
	}
	h.json(w, http.StatusOK, map[string][]string{"canceled_ids": done, "error_ids": failed})
}

// cancelQueue is the Cancel of all that run in a queue.
func (h *Handler) cancelQueue(w http.ResponseWriter, r *http.Request) {
	live, err := h.cfg.Store.Live(r.Context())
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	for _, task := range live {
		if task.State != store.Running || task.Class != r.PathValue("queue") {
			continue
		}
		if _, err := h.stopTask(r.Context(), task.ID); err != nil && !errors.Is(err, tasks.ErrNotFound) {
			h.refuse(w, r, err)
			return
		}
	}
	w.WriteHeader(http.StatusNoContent)
}

// stopDelivery cancels the task of a delivery.
func (h *Handler) stopDelivery(r *http.Request, delivery string) error {
	id, err := h.cfg.Desk.Delivered(r.Context(), delivery)
	if err == nil {
		_, err = h.stopTask(r.Context(), id)
	}
	return err
}
