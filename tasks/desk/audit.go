package desk

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/people"
)

// AuditEntry is an entry of the audit log: a change that someone made or tried to make.
type AuditEntry struct {
	Seq    int64     `json:"seq"` // 1 for the first entry
	Time   time.Time `json:"time"`
	Who    string    `json:"who"`              // the front door's user, or source and account, such as slack/U02ABC
	Name   string    `json:"name,omitempty"`   // name of the account; empty if unknown
	How    string    `json:"how"`              // token, invite, login, proxy, api token, link; or the source
	Role   string    `json:"role"`             // empty for an action in a source, which has its own rules
	What   string    `json:"what"`             // login, logout, the request's method and path, or the source's action
	From   string    `json:"from"`             // an IP address or the source
	Status int       `json:"status"`           // HTTP status, or its equivalent for an action in a source
	Result string    `json:"result,omitempty"` // path of the resulting task or page
	Answer string    `json:"answer,omitempty"` // to a question of the task; see recorded
	Hash   string    `json:"hash,omitempty"`   // hash of this entry and the previous one; not part of its input
}

// auditTime bounds how long recording may delay a response.
const auditTime = 2 * time.Second

// maxAudited bounds the fields of an entry that people choose, in bytes.
const maxAudited = 300

// RecordAudit appends an entry to Redis and writes it to the log with its hash. If Redis fails, the entry is only in
// the log.
func RecordAudit(ctx context.Context, s *store.Audit, log *slog.Logger, e AuditEntry) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), auditTime)
	defer cancel()
	e.Time = time.Now().UTC()
	for _, chosen := range []*string{&e.What, &e.Result, &e.Answer} {
		*chosen = strings.ToValidUTF8((*chosen)[:min(len(*chosen), maxAudited)], "")
	}
	stored, err := s.Append(ctx, func(seq int64, at time.Time) ([]byte, error) {
		e.Seq, e.Time = seq, at
		return json.Marshal(e)
	})
	log = log.With("seq", e.Seq, "at", e.Time, "who", e.Who, "name", e.Name, "how", e.How, "role", e.Role,
		"what", e.What, "from", e.From, "status", e.Status, "result", e.Result, "answer", e.Answer)
	if err != nil {
		log.Error("audit entry is only in this log", "err", err)
		return
	}
	log.Info("audit", "hash", stored.Hash)
}

// Task returns the ID of the task that the entry is about, or "".
func (e AuditEntry) Task() string {
	for _, at := range []string{e.Result, e.What} {
		for part := range strings.FieldsFuncSeq(at, func(c rune) bool { return c == '/' || c == ' ' || c == '#' }) {
			if tasks.ValidID(part) {
				return part
			}
		}
	}
	return ""
}

type answerKey struct{}

// WithAnswer returns a context in which the desk notes what an audit entry has of the answer that a request gives.
func WithAnswer(ctx context.Context) context.Context {
	return context.WithValue(ctx, answerKey{}, new(string))
}

// AnswerIn returns what the desk has noted in a context of WithAnswer; "" is none.
func AnswerIn(ctx context.Context) *string {
	if noted, ok := ctx.Value(answerKey{}).(*string); ok {
		return noted
	}
	return new(string)
}

// Sender is a person who acts through a source, outside of the front door's own pages.
type Sender struct {
	Source, Account string
	Name            func(context.Context) string // returns their display name; nil if unknown
}

type senderKey struct{}

// acting is a sender in a context, and whether the desk has recorded something for them.
type acting struct {
	Sender
	recorded bool
}

// trail records what people do through sources. It is part of the desk, so that no source can forget it.
type trail struct {
	store  *store.Audit
	people people.People
	log    *slog.Logger
}

// As runs do, the action of a person in a source, and records it in the audit log. The desk records changes of tasks
// itself. For other changes, and for refusals, As records one entry with the action and its target, a task or thread.
// If changed is false and there is no error, nothing is recorded. As returns the error of do.
func (l *trail) As(
	ctx context.Context, by Sender, what, target string, do func(context.Context) (changed bool, err error),
) error {
	a := &acting{Sender: by}
	ctx = context.WithValue(WithAnswer(ctx), senderKey{}, a)
	changed, err := do(ctx)
	if !a.recorded && (changed || err != nil) {
		l.audit(ctx, what, target, err)
	}
	return err
}

// audit records an action of the sender in the context. Without a sender it records nothing: the front door records its
// requests itself, and errand's own actions are not audited.
func (l *trail) audit(ctx context.Context, what, target string, err error) {
	a, ok := ctx.Value(senderKey{}).(*acting)
	if !ok {
		return
	}
	a.recorded = true
	e := AuditEntry{
		Who: a.Source + "/" + a.Account, How: a.Source, From: a.Source, What: what, Status: statusOf(err),
		Answer: *AnswerIn(ctx),
	}
	if one, ok := l.people.Find(a.Source, a.Account); ok {
		e.Name = one.Name
	} else if a.Name != nil {
		e.Name = a.Name(ctx)
	}
	if tasks.ValidID(target) {
		e.Result = "/tasks/" + target
	} else if target != "" {
		e.What += " " + target
	}
	RecordAudit(ctx, l.store, l.log, e)
}

// statusOf returns the HTTP status with which the console answers an error.
func statusOf(err error) int {
	_, role := errors.AsType[*people.RoleError](err)
	_, input := errors.AsType[*tasks.InputError](err)
	switch {
	case err == nil:
		return http.StatusOK
	case role, errors.Is(err, tasks.ErrRefused):
		return http.StatusForbidden
	case errors.Is(err, tasks.ErrNotFound):
		return http.StatusNotFound
	case errors.Is(err, tasks.ErrNotEnded), input:
		return http.StatusConflict
	}
	return http.StatusInternalServerError
}

// askerIn returns who acts in a context, or the zero value if errand itself does.
func askerIn(ctx context.Context) tasks.Asker {
	if a, ok := ctx.Value(senderKey{}).(*acting); ok {
		return tasks.Asker{Source: a.Source, Account: a.Account}
	}
	if v, ok := people.VisitorIn(ctx); ok {
		return tasks.Asker{Source: people.ChatSource, Account: people.Actor(ctx), Login: v.Login, Partial: v.Partial()}
	}
	return tasks.Asker{}
}
