package web

import (
	"bytes"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/hibiken/asynqmon"

	"github.com/errand-fleet/errand/tasks"
)

// newQueues embeds asynqmon. Unless it is configured otherwise it is to look at only: deliveries are not tasks, and one that is
// deleted or archived there behind the store's back comes back by the reconciler.
func newQueues(cfg Config) *asynqmon.HTTPHandler {
	return asynqmon.New(asynqmon.Options{
		RootPath: "/queues", RedisConnOpt: cfg.Redis, ReadOnly: !cfg.QueuesWritable,
		PayloadFormatter: newPayloads(cfg.Store),
		ResultFormatter:  asynqmon.ResultFormatterFunc(func(string, []byte) string { return "" }),
	})
}

// maxRows bounds a page of deliveries, as asynqmon's own pages do: each is looked up in the store.
const maxRows = 100

// serveQueues allows asynqmon's pages the inline script and styles they are built with.
func (h *Handler) serveQueues(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Security-Policy", "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; "+
		"img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'")
	switch path := r.URL.Path; {
	case strings.HasPrefix(path, "/queues/static/"):
		w.Header().Set("Cache-Control", "private, max-age=86400") // 2 MB, and their names change with their content
		h.queues.ServeHTTP(w, r)
	case strings.HasPrefix(path, "/queues/api/"):
		query := r.URL.Query()
		if n, err := strconv.Atoi(query.Get("size")); err == nil && n > maxRows {
			query.Set("size", strconv.Itoa(maxRows))
			r.URL.RawQuery = query.Encode()
		}
		h.queues.ServeHTTP(w, r)
	default:
		page := held{ResponseWriter: w}
		h.queues.ServeHTTP(&page, r)
		_, _ = w.Write(ours(page.body.Bytes())) // the reader may be gone
	}
}

// held keeps what is written, to be changed.
type held struct {
	http.ResponseWriter
	body bytes.Buffer
}

func (h *held) Write(b []byte) (int, error) { return h.body.Write(b) }

// fonts are asynqmon's only links to elsewhere. Our policy would not follow them; the pages do without.
var fonts = regexp.MustCompile(`<link[^>]*//fonts\.[^>]*>`)

// ours adds the way to our own pages to one of asynqmon's.
func ours(page []byte) []byte {
	page = fonts.ReplaceAll(page, nil)
	return bytes.Replace(page, []byte("</head>"), []byte(`<script src="/static/queues.js" defer></script></head>`), 1)
}

// deliveryPath is the page of a task's latest delivery.
func deliveryPath(s tasks.Status) string {
	return "/queues/queues/" + s.Task.Class + "/tasks/" + s.Delivery
}

// deliveredTask leads from a delivery to the page of its task.
func (h *Handler) deliveredTask(w http.ResponseWriter, r *http.Request) {
	id, err := h.cfg.Desk.Delivered(r.Context(), r.PathValue("id"))
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	http.Redirect(w, r, "/tasks/"+id, http.StatusSeeOther) //nolint:gosec // the store knows it as an ID
}
