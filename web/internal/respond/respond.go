// Package respond writes the responses of the console and its API: JSON, problem documents and HTML pages.
//
// A handler returns an error, and Handle turns it into a response: a Problem as it is, and errors of the desk as the
// problem they mean. Programs get a problem document, browsers a page. A Responder may be used from any number of
// goroutines.
package respond

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/errand-fleet/errand/internal/display"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/people"
	"github.com/errand-fleet/errand/tasks/policy"
)

// Problem is an error document of RFC 9457. The detail says how to fix the problem where that is possible.
type Problem struct {
	Status int    `json:"status"`
	Title  string `json:"title"`
	Detail string `json:"detail"`
}

func (p Problem) Error() string { return p.Title + ": " + p.Detail }

// Error returns a Problem.
func Error(status int, title, detail string) error { return Problem{status, title, detail} }

// BadQuery is the problem of a query that cannot be read.
func BadQuery(format string, args ...any) error {
	return Problem{http.StatusBadRequest, "Invalid query", fmt.Sprintf(format, args...)}
}

// Number reads a parameter of a query that must be a number from 1 to most. Without one, n stays as it is.
func Number(q url.Values, name string, most int, n *int) error {
	text := q.Get(name)
	if text == "" {
		return nil
	}
	v, err := strconv.Atoi(text)
	if err != nil || v < 1 || v > most {
		return BadQuery("%s must be a number from 1 to %d.", name, most)
	}
	*n = v
	return nil
}

// errInternal is sent after the cause was logged.
var errInternal = Problem{
	http.StatusInternalServerError, "Internal error",
	"The response could not be written. See the log of the front door.",
}

// Responder writes responses. Create one with New.
type Responder struct {
	pages map[string]*template.Template
	roles map[string]policy.Role // by pattern
	log   *slog.Logger
}

// Handler is a handler that returns an error instead of writing it.
type Handler = func(http.ResponseWriter, *http.Request) error

// Route is a handler and the role that a visitor needs at least.
type Route struct {
	Role   policy.Role
	Handle Handler
}

// For returns the route of a handler for visitors who have a role.
func For(role policy.Role, h Handler) Route { return Route{role, h} }

// Route adds handlers to mux by their patterns.
func (o *Responder) Route(mux *http.ServeMux, routes map[string]Route) {
	for pattern, route := range routes {
		mux.HandleFunc(pattern, o.Handle(route.Handle))
		o.roles[pattern] = route.Role
	}
}

// Allow sets the role that a route needs which was added to the mux elsewhere.
func (o *Responder) Allow(pattern string, role policy.Role) { o.roles[pattern] = role }

// Role returns the role that a pattern needs, and whether one was set.
func (o *Responder) Role(pattern string) (role policy.Role, ok bool) {
	role, ok = o.roles[pattern]
	return role, ok
}

// Roles returns the role of every route by its pattern.
func (o *Responder) Roles() map[string]policy.Role { return maps.Clone(o.roles) }

// Handle adapts a handler that returns an error.
func (o *Responder) Handle(handle Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := handle(w, r); err != nil {
			o.Fail(w, r, err)
		}
	}
}

// ProblemOf returns an error as a Problem, and whether it is known. An error that is neither a Problem nor one of the
// desk's comes from Redis.
func ProblemOf(err error) (p Problem, known bool) {
	if p, known = errors.AsType[Problem](err); known {
		return p, true
	}
	denied, _ := errors.AsType[*people.RoleError](err)
	input, _ := errors.AsType[*tasks.InputError](err)
	switch {
	case input != nil:
		return Problem{http.StatusBadRequest, "Invalid input", input.Sentence}, true
	case errors.Is(err, tasks.ErrNotFound):
		return Problem{
			http.StatusNotFound, "No such task",
			"The task does not exist, or was deleted: tasks are kept for a week after they end.",
		}, true
	case denied != nil:
		return Problem{http.StatusForbidden, "Not allowed", denied.Sentence}, true
	case errors.Is(err, tasks.ErrNotEnded):
		return Problem{http.StatusConflict, "Not ended", "The task has not ended: cancel it first, or wait."}, true
	}
	return Problem{http.StatusServiceUnavailable, "Unavailable", "Redis does not answer. Try again in a moment."}, false
}

// Fail writes an error, and logs it if it is not known.
func (o *Responder) Fail(w http.ResponseWriter, r *http.Request, err error) {
	p, known := ProblemOf(err)
	if !known {
		if r.Context().Err() != nil { // the client is gone
			return
		}
		o.log.Warn("serve console", "path", r.URL.Path, "err", err)
	}
	v := errorView{p, "/", "Back to the tasks"}
	id := people.VisitorOf(r.Context()).Task
	if of := r.PathValue("id"); strings.HasPrefix(r.URL.Path, "/tasks/"+of+"/") && !errors.Is(err, tasks.ErrNotFound) {
		id = of // its log, its changes or a button
	}
	if tasks.ValidID(id) {
		v.Back, v.To = "/tasks/"+id, "Back to the task"
	}
	if strings.HasPrefix(r.URL.Path, "/api/") || !WantsHTML(r) || o.Page(w, r, p.Status, "error", v) != nil {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(p.Status)
		_ = json.NewEncoder(w).Encode(p) // the client may be gone
	}
}

// errorView is the page of an error.
type errorView struct {
	Problem
	Back, To string // where a link leads, and its text
}

// WantsHTML reports whether a request comes from a browser that shows pages.
func WantsHTML(r *http.Request) bool { return strings.Contains(r.Header.Get("Accept"), "text/html") }

// JSON writes a value as JSON.
func (o *Responder) JSON(w http.ResponseWriter, status int, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		o.log.Error("marshal response", "err", err)
		return errInternal
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n')) // the client may be gone
	return nil
}

// SetHeaders sets the headers that restrict what a browser does with a response. Handlers that need more rights replace
// them.
func SetHeaders(h http.Header) {
	h.Set("Content-Security-Policy",
		"default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	// Not no-referrer: a browser would then send "Origin: null" with the console's own forms, as if another site had
	// sent them.
	h.Set("Referrer-Policy", "same-origin")
}

// Unrouted writes what the mux says about a request that no route matches: 404, or 405 with the allowed methods.
func (o *Responder) Unrouted(w http.ResponseWriter, r *http.Request, mux http.Handler) {
	var status statusRecorder
	status.header = w.Header()
	mux.ServeHTTP(&status, r)
	if status.code == http.StatusMethodNotAllowed {
		o.Fail(w, r, Problem{
			status.code, "Method not allowed", "Only " + w.Header().Get("Allow") + " is allowed here.",
		})
		return
	}
	o.Fail(w, r, Problem{http.StatusNotFound, "Not found", "There is no such page."})
}

// statusRecorder is an http.ResponseWriter that keeps only the status and the headers.
type statusRecorder struct {
	header http.Header
	code   int
}

func (s *statusRecorder) Header() http.Header         { return s.header }
func (s *statusRecorder) WriteHeader(code int)        { s.code = code }
func (s *statusRecorder) Write(b []byte) (int, error) { return len(b), nil }

//go:embed pages/*.html
var pageFiles embed.FS

//go:embed static
var staticFiles embed.FS

// Static serves the styles and scripts of the pages, below /static/.
var Static = http.FileServerFS(staticFiles)

// New parses the templates of the pages.
func New(log *slog.Logger) (*Responder, error) {
	o := &Responder{pages: map[string]*template.Template{}, roles: map[string]policy.Role{}, log: log}
	for _, name := range []string{
		"list", "task", "diff", "chat", "log", "costs", "fleet", "audit", "config", "login", "link", "enter", "error",
	} {
		words := template.FuncMap{"code": code, "short": display.TaskID, "when": when}
		t, err := template.New("layout.html").Funcs(words).ParseFS(pageFiles,
			"pages/layout.html", "pages/timeline.html", "pages/changes.html", "pages/"+name+".html")
		if err != nil {
			return nil, fmt.Errorf("web: parse page %s: %w", name, err)
		}
		o.pages[name] = t
	}
	return o, nil
}

// frame is what the layout needs of a page. Its methods say which links lead somewhere for the visitor.
type frame struct {
	Page    string // the name of its template
	Data    any
	Visitor people.Visitor // without a name: unknown
}

func (f frame) Member() bool { return f.Visitor.Name != "" && f.Visitor.Role >= policy.Viewer }
func (f frame) Chat() bool   { return f.Visitor.Role >= policy.User }
func (f frame) Queues() bool { return f.Visitor.Operates(context.Background(), "") == nil }
func (f frame) Audit() bool  { return f.Visitor.Role >= policy.Admin }

// Render executes the template of a page for the visitor of a context. Characters that show nothing are spelled out,
// wherever they come from.
func (o *Responder) Render(ctx context.Context, name string, data any) (*bytes.Buffer, error) {
	var b bytes.Buffer
	if err := o.pages[name].ExecuteTemplate(&b, "layout", frame{name, data, people.VisitorOf(ctx)}); err != nil {
		o.log.Error("render page", "page", name, "err", err)
		return nil, errInternal
	}
	return bytes.NewBufferString(display.Spelled(b.String())), nil
}

// Page writes a whole page or, if rendering fails, nothing.
func (o *Responder) Page(w http.ResponseWriter, r *http.Request, status int, name string, data any) error {
	b, err := o.Render(r.Context(), name, data)
	if err == nil {
		HTML(w, status, b)
	}
	return err
}

// LivePage writes a page that static/live.js requests every few seconds. An unchanged page is answered with 304.
func (o *Responder) LivePage(w http.ResponseWriter, r *http.Request, name string, data any) error {
	b, err := o.Render(r.Context(), name, data)
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

// code formats what is between backticks as code. static/task.js does the same.
func code(text string) template.HTML {
	var b strings.Builder
	parts := strings.Split(text, "`")
	for i, part := range parts {
		part = template.HTMLEscapeString(part)
		switch {
		case i%2 == 0:
			b.WriteString(part)
		case i == len(parts)-1:
			b.WriteString("`" + part)
		default:
			b.WriteString("<code>" + part + "</code>")
		}
	}
	return template.HTML(b.String()) //nolint:gosec // all parts are escaped
}

// forms are the forms of times, in UTC. static/times.js shows them in the reader's zone.
var forms = map[string]string{
	"clock": "15:04:05", "minute": "15:04 UTC", "hour": "Jan 2, 15:04 UTC", "moment": "2006-01-02 15:04:05 UTC",
}

// when is the only way in which pages show a time. text is shown instead of it, such as an age. Entries that a script
// makes begin without one.
func when(form string, at time.Time, text ...string) template.HTML {
	if at.IsZero() {
		return template.HTML(`<time data-show="` + template.HTMLEscapeString(form) + `"></time>`) //nolint:gosec // escaped
	}
	at = at.UTC()
	shown := at.Format(forms[form])
	if len(text) > 0 {
		shown = text[0]
	}
	return template.HTML(fmt.Sprintf(`<time datetime="%s" data-show="%s" title="%s">%s</time>`, //nolint:gosec // escaped
		at.Format("2006-01-02T15:04:05.000Z"), template.HTMLEscapeString(form), at.Format(forms["moment"]),
		template.HTMLEscapeString(shown)))
}
