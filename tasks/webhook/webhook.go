// Package webhook tells other programs with signed HTTP requests that tasks have ended.
//
// It promises that each ending which a webhook wants arrives at least once, with the same Idempotency-Key each time,
// unless the task is retried before: then its next ending is told. If the receiver fails for about a day, the delivery
// stays in the outgoing inbox, from where an operator sends it again. Workers note the endings and front doors send
// them, so that a webhook's secret is on no machine where agents run. It does not promise an order.
package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/errand-fleet/errand/internal/pattern"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/intake"
)

// Webhook is a receiver of endings.
type Webhook struct {
	Name   string // [a-z0-9-]
	URL    string
	Secret string // signs requests; only front doors need it
	// patterns such as acme/*, of which one must match each repository of a task; empty: all tasks
	Repositories []string
}

func (w Webhook) wants(t tasks.Task) bool { return pattern.Covers(w.Repositories, t.Places()...) }

// Config is what New needs. Inbox is required.
type Config struct {
	Webhooks []Webhook
	Inbox    intake.Inbox // of deliveries
	// a task as receivers get it; only front doors need it
	Task func(ctx context.Context, id string) (body any, ended time.Time, err error)
	HTTP http.RoundTripper // nil: http.DefaultTransport
}

// Webhooks notes and delivers endings. It is safe for concurrent use.
type Webhooks struct {
	cfg  Config
	http *http.Client
}

// New returns the webhooks, and delivers what the inbox has to be delivered.
func New(cfg Config) *Webhooks {
	w := &Webhooks{
		cfg: cfg,
		http: &http.Client{
			Transport: cfg.HTTP, Timeout: answerLimit, CheckRedirect: func(*http.Request, []*http.Request) error {
				return http.ErrUseLastResponse
			},
		},
	}
	cfg.Inbox.Handle(sourceName, w.deliver)
	return w
}

// sourceName is the source of deliveries in the inbox.
const sourceName = "webhook"

// note is what the inbox keeps of a delivery.
type note struct {
	Webhook string    `json:"webhook"`
	Task    string    `json:"task"`
	Ended   time.Time `json:"ended"`
}

// id identifies a delivery. A task that was retried has several endings.
func (n note) id() string {
	return n.Webhook + "." + n.Task + "." + strconv.FormatInt(n.Ended.UnixMicro(), 10)
}

// Note notes the ending of a task for each webhook that wants it. It can be repeated.
func (w *Webhooks) Note(ctx context.Context, t tasks.Task, ended time.Time) error {
	for _, hook := range w.cfg.Webhooks {
		if !hook.wants(t) {
			continue
		}
		n := note{Webhook: hook.Name, Task: t.ID, Ended: ended}
		payload, err := json.Marshal(n)
		if err != nil {
			return fmt.Errorf("encode delivery: %w", err)
		}
		err = w.cfg.Inbox.Accept(ctx, intake.Event{Source: sourceName, Kind: hook.Name, ID: n.id(), Body: payload})
		if err != nil {
			return fmt.Errorf("note ending for webhook %s: %w", hook.Name, err)
		}
	}
	return nil
}

const answerLimit = 10 * time.Second // for a response

// ended is the body of a request.
type ended struct {
	Event   string `json:"event"`
	Webhook string `json:"webhook"`
	Task    any    `json:"task"`
}

// deliver makes one attempt.
func (w *Webhooks) deliver(ctx context.Context, e intake.Event) (outcome string, err error) {
	var n note
	if err := json.Unmarshal(e.Body, &n); err != nil {
		return "", fmt.Errorf("read delivery: %w: %w", err, intake.ErrUnreadable)
	}
	i := slices.IndexFunc(w.cfg.Webhooks, func(one Webhook) bool { return one.Name == n.Webhook })
	if i < 0 {
		return "", fmt.Errorf("errand.yaml of this front door has no webhook %s", n.Webhook) // another one's may have
	}
	task, at, err := w.cfg.Task(ctx, n.Task)
	switch {
	case errors.Is(err, tasks.ErrNotFound):
		return "", fmt.Errorf("the task is no longer kept: %w", intake.ErrUnreadable)
	case err != nil:
		return "", err
	case !at.Equal(n.Ended):
		return "An earlier ending.", nil // it was retried, and its next ending is another delivery
	}
	body, err := json.Marshal(ended{"task.ended", n.Webhook, task})
	if err != nil {
		return "", fmt.Errorf("encode task %s: %w: %w", n.Task, err, intake.ErrUnreadable)
	}
	return "Delivered.", w.post(ctx, w.cfg.Webhooks[i], n.id(), body)
}

// post sends a signed request. Its error contains nothing of the response but the status, and not the URL, which may
// have a token.
func (w *Webhooks) post(ctx context.Context, to Webhook, key string, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to.URL, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("the URL of webhook %s is invalid: %w", to.Name, intake.ErrUnreadable)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "errand")
	intake.Sign(req.Header, to.Secret, key, time.Now(), body)
	resp, err := w.http.Do(req)
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok {
			err = failed.Err
		}
		return fmt.Errorf("reach the receiver: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10) // so that the connection can be used again
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("the receiver answered %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	}
	return nil
}
