package web

import (
	"context"
	"io"
	"net/http"
	"time"
)

// probeLimit is how long a probe waits for Redis; whoever probes has little patience.
const probeLimit = 2 * time.Second

// livez says that the process serves.
func (h *Handler) livez(w http.ResponseWriter, _ *http.Request) { text(w, http.StatusOK, "ok\n") }

// readyz says whether the process can do its part. Everybody may ask, so the reason names no address.
func (h *Handler) readyz(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), probeLimit)
	defer cancel()
	if err := soon(ctx, h.cfg.Store.Ping); err != nil {
		text(w, http.StatusServiceUnavailable, "Redis does not answer.\n")
		return
	}
	if h.cfg.Ready != nil {
		if err := soon(ctx, h.cfg.Ready); err != nil {
			text(w, http.StatusServiceUnavailable, err.Error()+"\n")
			return
		}
	}
	text(w, http.StatusOK, "ok\n")
}

func text(w http.ResponseWriter, status int, s string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, s)
}
