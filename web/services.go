package web

import (
	"net/http"

	"github.com/errand-fleet/errand/store"
)

// services tells how the services are set up that this front door works with. It asks them: this is for people who wonder, not for probes.
func (h *Handler) services(w http.ResponseWriter, r *http.Request) {
	list := []store.Finding{}
	if h.cfg.Examine != nil {
		list = append(list, h.cfg.Examine(r.Context())...)
	}
	h.json(w, http.StatusOK, map[string]any{"findings": list})
}
