package web

import (
	"net/http"
	"strings"

	"github.com/hibiken/asynq"
	"github.com/hibiken/asynqmon"

	"github.com/errand-fleet/errand/tasks"
)

// newQueues embeds asynqmon, to look at only: deliveries are not tasks, and one that is deleted or archived there behind the
// store's back would come back by the reconciler, or wait for it.
func newQueues(redis asynq.RedisConnOpt) *asynqmon.HTTPHandler {
	return asynqmon.New(asynqmon.Options{
		RootPath: "/queues", RedisConnOpt: redis, ReadOnly: true,
		PayloadFormatter: asynqmon.PayloadFormatterFunc(formatPayload),
		ResultFormatter:  asynqmon.ResultFormatterFunc(func(string, []byte) string { return "" }),
	})
}

// formatPayload shows a payload that is a task's ID, and nothing of one that somebody else put into this Redis.
func formatPayload(_ string, payload []byte) string {
	if id := string(payload); tasks.ValidID(id) {
		return id
	}
	return "(not a task ID)"
}

// serveQueues allows asynqmon's pages the inline script and styles they are built with. Their fonts from elsewhere stay out; the
// pages do without.
func (h *Handler) serveQueues(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Security-Policy", "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; "+
		"img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'")
	if strings.HasPrefix(r.URL.Path, "/queues/static/") {
		w.Header().Set("Cache-Control", "private, max-age=86400") // 2 MB, and their names change with their content
	}
	h.queues.ServeHTTP(w, r)
}
