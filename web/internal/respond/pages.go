package respond

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"

	"github.com/errand-fleet/errand/internal/legible"
)

//go:embed pages/*.html
var pageFiles embed.FS

//go:embed static
var staticFiles embed.FS

// Static serves the styles and scripts of the pages, below /static/.
var Static = http.FileServerFS(staticFiles)

// New parses the templates of the pages.
func New(log *slog.Logger) (*Responder, error) {
	o := &Responder{pages: map[string]*template.Template{}, log: log}
	for _, name := range []string{"list", "task", "chat", "log", "costs", "health", "login", "enter", "error"} {
		t, err := template.ParseFS(pageFiles, "pages/layout.html", "pages/timeline.html", "pages/"+name+".html")
		if err != nil {
			return nil, fmt.Errorf("web: parse page %s: %w", name, err)
		}
		o.pages[name] = t
	}
	return o, nil
}

// Render executes the template of a page. Characters that show nothing are spelled out, wherever they come from.
func (o *Responder) Render(name string, data any) (*bytes.Buffer, error) {
	var b bytes.Buffer
	if err := o.pages[name].ExecuteTemplate(&b, "layout", data); err != nil {
		o.log.Error("render page", "page", name, "err", err)
		return nil, errInternal
	}
	return bytes.NewBufferString(legible.Spelled(b.String())), nil
}

// Page writes a whole page or, if rendering fails, nothing.
func (o *Responder) Page(w http.ResponseWriter, status int, name string, data any) error {
	b, err := o.Render(name, data)
	if err == nil {
		HTML(w, status, b)
	}
	return err
}

// LivePage writes a page that static/live.js requests every few seconds. An unchanged page is answered with 304.
func (o *Responder) LivePage(w http.ResponseWriter, r *http.Request, name string, data any) error {
	b, err := o.Render(name, data)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(b.Bytes())
	tag := `"` + hex.EncodeToString(sum[:12]) + `"`
	w.Header().Set("ETag", tag)
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	HTML(w, http.StatusOK, b)
	return nil
}

// HTML writes rendered HTML.
func HTML(w http.ResponseWriter, status int, page *bytes.Buffer) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = page.WriteTo(w) // the client may be gone
}
