// Package console serves the pages of the console: tasks, timelines, logs, chat, costs, health, and asynqmon's view of
// the queues.
//
// Text of people and agents is shown as text and never becomes markup; agents' Markdown is rendered without HTML,
// images and local links. Handlers may be used from any number of goroutines; authentication is the caller's.
package console

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/hibiken/asynq"
	"github.com/hibiken/asynqmon"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/people"
	"github.com/errand-fleet/errand/tasks/policy"
	"github.com/errand-fleet/errand/web/auth"
	"github.com/errand-fleet/errand/web/internal/respond"
	"github.com/errand-fleet/errand/web/internal/view"
	"github.com/errand-fleet/errand/web/logs"
)

// Console is the pages. Create one with New and close it.
type Console struct {
	Config

	queues  *asynqmon.HTTPHandler
	renders chan struct{} // holds one element for each page with a timeline that is being rendered
}

// Config configures the console. View, Logs, Out and Redis are required.
type Config struct {
	View    *view.Reader
	Logs    *logs.Reader
	Out     *respond.Responder
	Audit   *auth.Audit
	Links   func(tasks.Task) tasks.Links // the pages of other products that a task is about; nil: unknown
	Chat    Chat
	Examine func(context.Context) []store.Finding // checks the services of the sources; nil if there are none

	Redis asynq.RedisConnOpt // for asynqmon, which opens its own connections
}

// New returns a console and adds its routes to mux.
func New(cfg Config, mux *http.ServeMux) *Console {
	c := &Console{Config: cfg, queues: newQueues(cfg.Redis), renders: make(chan struct{}, maxRenders)}
	if c.Links == nil {
		c.Links = func(tasks.Task) tasks.Links { return tasks.Links{} }
	}
	cfg.Out.Route(mux, map[string]respond.Route{
		"GET /{$}":                     respond.For(policy.Viewer, c.listPage),
		"GET /fleet":                   respond.For(policy.Viewer, c.fleetPage),
		"GET /costs":                   respond.For(policy.Viewer, c.costsPage),
		"GET /audit":                   respond.For(policy.Admin, c.auditPage),
		"GET /config":                  respond.For(policy.Operator, c.configPage),
		"GET /chat":                    respond.For(policy.User, c.chatPage),
		"POST /chat":                   respond.For(policy.User, c.postChat),
		"GET /chat/{thread}":           respond.For(policy.Viewer, c.chatPage),
		"GET /tasks/{id}":              respond.For(policy.Guest, c.taskPage),
		"GET /tasks/{id}/log":          respond.For(policy.Guest, c.logPage),
		"GET /tasks/{id}/changes":      respond.For(policy.Guest, c.changesPage),
		"GET /tasks/{id}/files/{name}": respond.For(policy.Guest, c.attachedFile),
		"POST /tasks/{id}/cancel":      respond.For(policy.User, button(c.View.Cancel)),
		"POST /tasks/{id}/retry":       respond.For(policy.Operator, button(c.View.Retry)),
		"POST /tasks/{id}/answer":      respond.For(policy.User, c.answerQuestion),
		"POST /format":                 respond.For(policy.Viewer, c.formatText),
		"GET /queues/tasks/{id}":       respond.For(policy.Viewer, c.redirectToTask),

		"POST /fleet/classes/{name}/pause":    respond.For(policy.Operator, c.halt((*desk.Fleet).Pause)),
		"POST /fleet/classes/{name}/resume":   respond.For(policy.Operator, c.halt((*desk.Fleet).Resume)),
		"POST /fleet/workers/{name}/cordon":   respond.For(policy.Operator, c.halt((*desk.Fleet).Cordon)),
		"POST /fleet/workers/{name}/uncordon": respond.For(policy.Operator, c.halt((*desk.Fleet).Uncordon)),
	})
	mux.HandleFunc("/queues/", c.serveQueues)
	cfg.Out.Allow("/queues/", policy.Operator)
	return c
}

// Close closes asynqmon's connections to Redis.
func (c *Console) Close() error { return c.queues.Close() }

// newQueues embeds asynqmon, read-only. Payloads are task IDs, and results the words of endings or what became of an
// event; anything else in this Redis is not shown.
func newQueues(redis asynq.RedisConnOpt) *asynqmon.HTTPHandler {
	return asynqmon.New(asynqmon.Options{
		RootPath: "/queues", RedisConnOpt: redis, ReadOnly: true,
		PayloadFormatter: asynqmon.PayloadFormatterFunc(func(_ string, payload []byte) string {
			if id := string(payload); tasks.ValidID(id) {
				return id
			}
			return "(not a task ID)"
		}),
		ResultFormatter: asynqmon.ResultFormatterFunc(func(kind string, result []byte) string {
			if kind != "event" && !endingWord.Match(result) {
				return ""
			}
			return string(result)
		}),
	})
}

// endingWord matches what [tasks.Ending.Word] returns.
var endingWord = regexp.MustCompile(`^[a-z_]{1,20}( \([a-z_-]{1,40}\))?$`)

// serveQueues serves asynqmon. Its pages need inline scripts and styles.
func (c *Console) serveQueues(w http.ResponseWriter, r *http.Request) {
	if err := people.VisitorOf(r.Context()).Operates(r.Context(), ""); err != nil {
		c.Out.Fail(w, r, err)
		return
	}
	w.Header().Set("Content-Security-Policy",
		"default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; "+
			"img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'")
	switch path := r.URL.Path; {
	case strings.HasPrefix(path, "/queues/static/"):
		w.Header().Set("Cache-Control", "private, max-age=86400") // 2 MB, whose names change with their content
		c.queues.ServeHTTP(w, r)
	case strings.HasPrefix(path, "/queues/api/"):
		list := bufferedWriter{ResponseWriter: w}
		c.queues.ServeHTTP(&list, r)
		_, _ = w.Write(c.describePayloads(r.Context(), list.body.Bytes()))
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

// payload matches the payload of a delivery, an ID, in asynqmon's answers.
var payload = regexp.MustCompile(`"payload":"([0-9]{16}-[a-z0-9.-]{1,63})"`)

// describePayloads adds the source and the title of each task to asynqmon's lists, whose first column has only the
// beginning of an ID. Of a task that the visitor may not see, the ID is all they get.
func (c *Console) describePayloads(ctx context.Context, list []byte) []byte {
	return payload.ReplaceAllFunc(list, func(match []byte) []byte {
		id := string(payload.FindSubmatch(match)[1])
		s, err := c.View.Desk.Status(ctx, id)
		if err != nil {
			return match
		}
		text, err := json.Marshal(fmt.Sprintf("%s: %s\n%s", s.Task.Source, s.Task.Title(), id))
		if err != nil {
			return match
		}
		return append([]byte(`"payload":`), text...)
	})
}

// fonts are asynqmon's only links to other sites. The content security policy blocks them, and the pages work without.
var fonts = regexp.MustCompile(`<link[^>]*//fonts\.[^>]*>`)

// addScript adds the script that links asynqmon's pages to those of the console.
func addScript(page []byte) []byte {
	page = fonts.ReplaceAll(page, nil)
	return bytes.Replace(page, []byte("</head>"), []byte(`<script src="/static/queues.js" defer></script></head>`), 1)
}

// deliveryPath returns the page of a task's latest delivery.
func deliveryPath(s tasks.Status) string {
	return "/queues/queues/" + store.QueueOf(s.Pool, s.Task.Class) + "/tasks/" + s.Delivery
}

// redirectToTask redirects from a delivery to the page of its task.
func (c *Console) redirectToTask(w http.ResponseWriter, r *http.Request) error {
	id, err := c.View.Desk.Delivered(r.Context(), r.PathValue("id"))
	if err == nil {
		http.Redirect(w, r, "/tasks/"+id, http.StatusSeeOther) //nolint:gosec // the store knows it as an ID
	}
	return err
}
