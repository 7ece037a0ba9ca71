package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/errand-fleet/errand/store"
)

// AuditEntry is an entry of the audit log: what someone changed, or tried to change.
type AuditEntry struct {
	Seq    int64     `json:"seq"` // the first entry has 1
	Time   time.Time `json:"time"`
	Who    string    `json:"who"`              // the visitor of the front door, or source and account, such as slack/U02ABC
	Name   string    `json:"name,omitempty"`   // of the account, if it is known
	How    string    `json:"how"`              // they authenticated: token, invite, login, proxy, api token, link; or the source
	Role   string    `json:"role"`             // empty for a source, which has its own rules
	What   string    `json:"what"`             // login, logout, the method and path of the request, or the action in a source
	From   string    `json:"from"`             // an IP address or the source
	Status int       `json:"status"`           // of the response, or the one that the console gives for the same
	Result string    `json:"result,omitempty"` // the path of the task or page that came of it
	Hash   string    `json:"hash,omitempty"`   // of the entry and the one before; not part of what is hashed
}

// auditTime bounds how long recording may delay a response.
const auditTime = 2 * time.Second

// maxAudited bounds what people choose of an entry, in bytes.
const maxAudited = 300

// RecordAudit appends an entry to Redis and writes it to the log with its hash. An entry that Redis cannot take is in
// the log only.
func RecordAudit(ctx context.Context, s *store.Audit, log *slog.Logger, e AuditEntry) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), auditTime)
	defer cancel()
	e.Time, e.What, e.Result = time.Now().UTC(), e.What[:min(len(e.What), maxAudited)], e.Result[:min(len(e.Result), maxAudited)]
	stored, err := s.Append(ctx, func(seq int64, at time.Time) ([]byte, error) {
		e.Seq, e.Time = seq, at
		return json.Marshal(e)
	})
	log = log.With("seq", e.Seq, "at", e.Time, "who", e.Who, "name", e.Name, "how", e.How, "role", e.Role, "what", e.What, "from", e.From,
		"status", e.Status, "result", e.Result)
	if err != nil {
		log.Error("audit entry is only in this log", "err", err)
		return
	}
	log.Info("audit", "hash", stored.Hash)
}

// Sender is a person who acts through a source, outside of the front door's own pages.
type Sender struct {
	Source, Account string
	Name            func(context.Context) string // what people call them; nil: unknown
}

// ErrRefused means that a source does not let a sender do something.
var ErrRefused = errors.New("refused")

type senderKey struct{}

// acting is a sender in a context, and whether the desk has recorded something for them.
type acting struct {
	Sender
	recorded bool
}

// trail records what people do through sources. It is part of the desk, so that no source can forget it.
type trail struct {
	store  *store.Audit
	people People
	log    *slog.Logger
}

// As does what a person asked for through a source, and records it in the audit log. The desk itself records what do
// changes in tasks. For all else, and for what is refused, there is one entry: what do was to do, with the task or thread
// that it is about. If changed is false and there is no error, nothing is recorded. As returns the error of do.
func (l *trail) As(ctx context.Context, by Sender, what, target string, do func(context.Context) (changed bool, err error)) error {
	a := &acting{Sender: by}
	ctx = context.WithValue(ctx, senderKey{}, a)
	changed, err := do(ctx)
	if !a.recorded && (changed || err != nil) {
		l.audit(ctx, what, target, err)
	}
	return err
}

// audit records an action of the sender in the context. Without one, the front door records the request, or errand acts
// by itself.
func (l *trail) audit(ctx context.Context, what, target string, err error) {
	a, ok := ctx.Value(senderKey{}).(*acting)
	if !ok {
		return
	}
	a.recorded = true
	e := AuditEntry{Who: a.Source + "/" + a.Account, How: a.Source, From: a.Source, What: what, Status: statusOf(err)}
	if one, ok := l.people.Find(a.Source, a.Account); ok {
		e.Name = one.Name
	} else if a.Name != nil {
		e.Name = a.Name(ctx)
	}
	if ValidID(target) {
		e.Result = "/tasks/" + target
	} else if target != "" {
		e.What += " " + target
	}
	RecordAudit(ctx, l.store, l.log, e)
}

// statusOf returns the HTTP status with which the console answers an error.
func statusOf(err error) int {
	_, role := errors.AsType[*RoleError](err)
	_, input := errors.AsType[*InputError](err)
	switch {
	case err == nil:
		return http.StatusOK
	case role, errors.Is(err, ErrRefused):
		return http.StatusForbidden
	case errors.Is(err, ErrNotFound):
		return http.StatusNotFound
	case errors.Is(err, ErrNotEnded), input:
		return http.StatusConflict
	}
	return http.StatusInternalServerError
}
