package auth

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/web/internal/respond"
)

// Entry is an entry of the audit log: what a visitor changed, or tried to change.
type Entry struct {
	Seq    int64     `json:"seq"` // the first entry has 1
	Time   time.Time `json:"time"`
	Who    string    `json:"who"`
	How    string    `json:"how"` // they authenticated: token, invite, login, proxy, api token, link
	Role   string    `json:"role"`
	What   string    `json:"what"`             // login, logout, or the method and path of the request
	From   string    `json:"from"`             // an IP address
	Status int       `json:"status"`           // of the response
	Result string    `json:"result,omitempty"` // the task or page that came of it
	Hash   string    `json:"hash,omitempty"`   // of the entry and the one before; not part of what is hashed
}

// Audit records what visitors change.
type Audit struct {
	Store *store.Audit
	Proxy Proxy
	Log   *slog.Logger
}

// auditTime bounds how long recording may delay a response.
const auditTime = 2 * time.Second

// maxWhat bounds what a visitor chooses of an entry, in bytes.
const maxWhat = 300

// record appends an entry to Redis and writes it to the log with its hash. An entry that Redis cannot take is in the
// log only.
func (a *Audit) record(r *http.Request, v tasks.Visitor, what string, status int, result string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), auditTime)
	defer cancel()
	e := Entry{
		Who: v.Name, How: v.Method, Role: v.Role.String(), What: what[:min(len(what), maxWhat)], From: a.Proxy.address(r), Status: status,
		Result: result[:min(len(result), maxWhat)], Time: time.Now().UTC(),
	}
	stored, err := a.Store.Append(ctx, func(seq int64, at time.Time) ([]byte, error) {
		e.Seq, e.Time = seq, at
		return json.Marshal(e)
	})
	log := a.Log.With("seq", e.Seq, "at", e.Time, "who", e.Who, "how", e.How, "role", e.Role, "what", e.What, "from", e.From,
		"status", e.Status, "result", e.Result)
	if err != nil {
		log.Error("audit entry is only in this log", "err", err)
		return
	}
	log.Info("audit", "hash", stored.Hash)
}

// Recorded records every request that may change something, just before its response begins.
func (a *Audit) Recorded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet || r.Method == http.MethodHead || r.URL.Path == "/format" {
			next.ServeHTTP(w, r)
			return
		}
		rec := &recorder{ResponseWriter: w, record: func(status int) {
			result := w.Header().Get("Errand-Task")
			if to := w.Header().Get("Location"); result == "" && strings.HasPrefix(to, "/") {
				result = to
			}
			a.record(r, tasks.VisitorOf(r.Context()), r.Method+" "+r.URL.Path, status, result)
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
	Who, What   string    // parts of what the entry says, in any case; What is also looked for in the result
	Since       time.Time // zero: all
	Skip, Limit int
}

// NewAuditQuery reads a query from the parameters who, what, since, skip and limit.
func NewAuditQuery(q url.Values, limit, maxLimit int) (AuditQuery, error) {
	a := AuditQuery{Who: q.Get("who"), What: q.Get("what"), Limit: limit}
	var err error
	if text := q.Get("skip"); text != "" {
		if a.Skip, err = strconv.Atoi(text); err != nil || a.Skip < 0 {
			return a, respond.BadQuery("skip must be a number.")
		}
	}
	if text := q.Get("limit"); text != "" {
		if a.Limit, err = strconv.Atoi(text); err != nil || a.Limit < 1 || a.Limit > maxLimit {
			return a, respond.BadQuery("limit must be a number from 1 to %d.", maxLimit)
		}
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
func (a *Audit) List(ctx context.Context, q AuditQuery) (list []Entry, next int, err error) {
	for skip := q.Skip; ; skip += auditChunk {
		stored, err := a.Store.List(ctx, skip, auditChunk)
		if err != nil {
			return nil, 0, err
		}
		for i, s := range stored {
			e := Entry{Hash: s.Hash}
			switch {
			case json.Unmarshal(s.Body, &e) != nil:
				e = Entry{What: "This entry cannot be read: it was changed.", Hash: s.Hash}
			case e.Time.Before(q.Since):
				return list, 0, nil
			case !contains(e.Who, q.Who), !contains(e.What+" "+e.Result, q.What):
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
