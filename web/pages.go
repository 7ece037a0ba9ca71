package web

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"net/http"

	"github.com/errand-fleet/errand/internal/legible"
)

//go:embed pages/*.html
var pageFiles embed.FS

//go:embed static
var staticFiles embed.FS

// pages are the templates, by name; read-only.
type pages map[string]*template.Template

func loadPages() (pages, error) {
	all := pages{}
	for _, name := range []string{"list", "task", "chat", "log", "costs", "health", "login", "enter", "error"} {
		t, err := template.ParseFS(pageFiles, "pages/layout.html", "pages/timeline.html", "pages/"+name+".html")
		if err != nil {
			return nil, fmt.Errorf("web: parse page %s: %w", name, err)
		}
		all[name] = t
	}
	return all, nil
}

// page writes a whole page or, if that goes wrong, none of it.
func (h *Handler) page(w http.ResponseWriter, status int, name string, data any) {
	if b, ok := h.render(w, name, data); ok {
		send(w, status, b)
	}
}

// render makes a page; false when it could not be, which is then answered. Nothing on it is hidden from whoever reads it, wherever it came
// from.
func (h *Handler) render(w http.ResponseWriter, name string, data any) (*bytes.Buffer, bool) {
	var b bytes.Buffer
	if err := h.pages[name].ExecuteTemplate(&b, "layout", data); err != nil {
		h.log.Error("write page", "page", name, "err", err)
		text(w, http.StatusInternalServerError, "This page could not be written. The log says more.\n")
		return nil, false
	}
	return bytes.NewBufferString(legible.Spelled(b.String())), true
}

func send(w http.ResponseWriter, status int, page *bytes.Buffer) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = page.WriteTo(w) // the reader may be gone
}
