package auth

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/errand-fleet/errand/internal/display"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/people"
	"github.com/errand-fleet/errand/web/internal/respond"
)

// Audit records what visitors change.
type Audit struct {
	Store *store.Audit
	Proxy Proxy
	Log   *slog.Logger
}

// MCPPath is the path of the MCP server. It records its calls itself, because each is a POST and most only read.
const MCPPath = "/mcp"

// Record appends an entry for a request of a visitor.
func (a *Audit) Record(r *http.Request, what string, status int, result string) {
	a.record(r, people.VisitorOf(r.Context()), what, status, result)
}

// record appends an entry for a request.
func (a *Audit) record(r *http.Request, v people.Visitor, what string, status int, result string) {
	desk.RecordAudit(r.Context(), a.Store, a.Log, desk.AuditEntry{
		Who: v.Name, How: v.Method, Role: v.Role.String(), What: what, From: a.Proxy.address(r), Status: status,
		Result: result, Answer: *desk.AnswerIn(r.Context()),
	})
}

// Recorded records every request that may change something, just before its response begins.
func (a *Audit) Recorded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet || r.Method == http.MethodHead || r.URL.Path == "/format" ||
			r.URL.Path == MCPPath {
			next.ServeHTTP(w, r)
			return
		}
		rec := &recorder{ResponseWriter: w, record: func(status int) {
			result := w.Header().Get("Errand-Task")
			if to := w.Header().Get("Location"); result == "" && strings.HasPrefix(to, "/") {
				result = to
			}
			a.Record(r, r.Method+" "+r.URL.Path, status, result)
		}}
		defer rec.begin(http.StatusOK) // a handler that writes nothing
		next.ServeHTTP(rec, r)
	})
}

// recorder calls record once, before the response begins.
type recorder struct {
	http.ResponseWriter
	record func(status int)
	begun  bool
}

func (r *recorder) begin(status int) {
	if !r.begun {
		r.begun = true
		r.record(status)
	}
}

func (r *recorder) WriteHeader(status int) {
	if status >= http.StatusOK {
		r.begin(status)
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(b []byte) (int, error) {
	r.begin(http.StatusOK)
	return r.ResponseWriter.Write(b)
}

// Unwrap lets an http.ResponseController reach the connection.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// AuditQuery selects entries of the audit log.
type AuditQuery struct {
	// parts of what the entry says, in any case; Who is also looked for in the name, What in the result, the answer and
	// the short ID of the task
	Who, What   string
	From        string    // console, slack or github; empty: all
	Since       time.Time // zero: all
	Skip, Limit int
}

// AuditSources lists from where people change something. Actions in the console have the address of the client.
var AuditSources = []string{people.Console, "slack", "github"}

// NewAuditQuery reads a query from the parameters who, what, from, since, skip and limit.
func NewAuditQuery(q url.Values, limit, maxLimit int) (AuditQuery, error) {
	a := AuditQuery{Who: q.Get("who"), What: q.Get("what"), From: q.Get("from"), Limit: limit}
	var err error
	if a.From != "" && !slices.Contains(AuditSources, a.From) {
		return a, respond.BadQuery("from must be one of %s.", strings.Join(AuditSources, ", "))
	}
	if text := q.Get("skip"); text != "" {
		if a.Skip, err = strconv.Atoi(text); err != nil || a.Skip < 0 {
			return a, respond.BadQuery("skip must be a number.")
		}
	}
	if err = respond.Number(q, "limit", maxLimit, &a.Limit); err != nil {
		return a, err
	}
	if text := q.Get("since"); text != "" {
		if a.Since, err = time.Parse(time.DateOnly, text); err != nil {
			a.Since, err = time.Parse(time.RFC3339, text)
		}
		if err != nil {
			return a, respond.BadQuery("since must be a day like 2026-01-31 or a time like 2026-01-31T12:00:00Z.")
		}
	}
	return a, nil
}

// auditChunk is how many entries List reads at once.
const auditChunk = 1000

// List returns the entries that a query selects, newest first. next is the Skip of the following page, or 0 if there is
// none.
func (a *Audit) List(ctx context.Context, q AuditQuery) (list []desk.AuditEntry, next int, err error) {
	for skip := q.Skip; ; skip += auditChunk {
		stored, err := a.Store.List(ctx, skip, auditChunk)
		if err != nil {
			return nil, 0, err
		}
		for i, s := range stored {
			e := desk.AuditEntry{Hash: s.Hash}
			switch {
			case json.Unmarshal(s.Body, &e) != nil:
				e = desk.AuditEntry{What: "This entry cannot be read: it was changed.", Hash: s.Hash}
			case e.Time.Before(q.Since):
				return list, 0, nil
			case !contains(e.Who+" "+e.Name, q.Who), q.From != "" && q.From != sourceOf(e),
				!contains(e.What+" "+e.Result+" "+e.Answer, q.What) && !display.IsTaskID(e.Task(), q.What):
				continue
			}
			if len(list) == q.Limit {
				return list, skip + i, nil
			}
			list = append(list, e)
		}
		if len(stored) < auditChunk {
			return list, 0, nil
		}
	}
}

// sourceOf returns the one of AuditSources that an entry is from.
func sourceOf(e desk.AuditEntry) string {
	if slices.Contains(AuditSources, e.From) {
		return e.From
	}
	return people.Console
}

func contains(text, part string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(part))
}

// Verify checks the chain of hashes. It returns how many entries match, and the problem of the first that does not.
func (a *Audit) Verify(ctx context.Context) (n int, problem string, err error) {
	n, err = a.Store.Verify(ctx)
	if tampered, ok := errors.AsType[*store.TamperedError](err); ok {
		return n, tampered.Error(), nil
	}
	return n, "", err
}
