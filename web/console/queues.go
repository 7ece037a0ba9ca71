package console

import (
	"bytes"
	"net/http"
	"regexp"
	"strings"

	"github.com/hibiken/asynq"
	"github.com/hibiken/asynqmon"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/web/internal/respond"
)

// newQueues embeds asynqmon, read-only unless configured otherwise. A delivery that is deleted or archived there comes
// back: the reconciler makes a new one. Payloads are task IDs; anything else in this Redis is not shown, and neither
// are results.
func newQueues(redis asynq.RedisConnOpt, writable bool) *asynqmon.HTTPHandler {
	return asynqmon.New(asynqmon.Options{
		RootPath: "/queues", RedisConnOpt: redis, ReadOnly: !writable,
		PayloadFormatter: asynqmon.PayloadFormatterFunc(func(_ string, payload []byte) string {
			if id := string(payload); tasks.ValidID(id) {
				return id
			}
			return "(not a task ID)"
		}),
		ResultFormatter: asynqmon.ResultFormatterFunc(func(string, []byte) string { return "" }),
	})
}

// serveQueues serves asynqmon. Its pages need inline scripts and styles.
func (c *Console) serveQueues(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Security-Policy", "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; "+
		"img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'")
	switch path := r.URL.Path; {
	case strings.HasPrefix(path, "/queues/static/"):
		w.Header().Set("Cache-Control", "private, max-age=86400") // 2 MB, whose names change with their content
		c.queues.ServeHTTP(w, r)
	case strings.HasPrefix(path, "/queues/api/"):
		c.queues.ServeHTTP(w, r)
	default:
		page := bufferedWriter{ResponseWriter: w}
		c.queues.ServeHTTP(&page, r)
		_, _ = w.Write(addScript(page.body.Bytes())) // the client may be gone
	}
}

// bufferedWriter is an http.ResponseWriter that keeps the body.
type bufferedWriter struct {
	http.ResponseWriter
	body bytes.Buffer
}

func (b *bufferedWriter) Write(p []byte) (int, error) { return b.body.Write(p) }

// fonts are asynqmon's only links to other sites. The content security policy blocks them, and the pages work without.
var fonts = regexp.MustCompile(`<link[^>]*//fonts\.[^>]*>`)

// addScript adds the script that links asynqmon's pages to those of the console.
func addScript(page []byte) []byte {
	page = fonts.ReplaceAll(page, nil)
	return bytes.Replace(page, []byte("</head>"), []byte(`<script src="/static/queues.js" defer></script></head>`), 1)
}

// deliveryPath returns the page of a task's latest delivery.
func deliveryPath(s tasks.Status) string {
	return "/queues/queues/" + s.Task.Class + "/tasks/" + s.Delivery
}

// redirectToTask redirects from a delivery to the page of its task.
func (c *Console) redirectToTask(w http.ResponseWriter, r *http.Request) error {
	id, err := c.view.Desk.Delivered(r.Context(), r.PathValue("id"))
	if err == nil {
		http.Redirect(w, r, "/tasks/"+id, http.StatusSeeOther) //nolint:gosec // the store knows it as an ID
	}
	return err
}

// cancelDelivery replaces asynqmon's cancel: the desk stores the cancel and who asked for it, and the task ends with a
// message. asynq only publishes it to the workers, once.
func (c *Console) cancelDelivery(w http.ResponseWriter, r *http.Request) error {
	delivery, ok := strings.CutSuffix(r.PathValue("id"), ":cancel")
	if !ok {
		c.serveQueues(w, r)
		return nil
	}
	id, err := c.view.Desk.Delivered(r.Context(), delivery)
	if err == nil {
		_, err = c.view.Desk.Cancel(r.Context(), id, tasks.Actor(r.Context()))
	}
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return err
}

// refuseBatch refuses to cancel several deliveries with asynqmon, which would bypass the desk.
func refuseBatch(http.ResponseWriter, *http.Request) error {
	return respond.Error(http.StatusForbidden, "Not available", "Cancel tasks one at a time.")
}
