package auth

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
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

// List returns up to n entries, newest first, after leaving out the newest skip.
func (a *Audit) List(ctx context.Context, skip, n int) ([]Entry, error) {
	stored, err := a.Store.List(ctx, skip, n)
	if err != nil {
		return nil, err
	}
	list := make([]Entry, len(stored))
	for i, s := range stored {
		if json.Unmarshal(s.Body, &list[i]) != nil {
			list[i] = Entry{What: "This entry cannot be read: it was changed."}
		}
		list[i].Hash = s.Hash
	}
	return list, nil
}
