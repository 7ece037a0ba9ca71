package web

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
)

// livePage writes a page that static/live.js asks for again every few seconds: while it is the same, nothing is sent.
func (h *Handler) livePage(w http.ResponseWriter, r *http.Request, name string, data any) {
	b, ok := h.render(w, name, data)
	if !ok {
		return
	}
	sum := sha256.Sum256(b.Bytes())
	tag := `"` + hex.EncodeToString(sum[:12]) + `"`
	w.Header().Set("ETag", tag)
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	send(w, http.StatusOK, b)
}
