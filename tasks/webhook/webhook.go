// Package webhook tells other programs with signed HTTP requests that tasks have ended.
//
// It promises that each ending which a webhook wants arrives at least once, with the same Idempotency-Key each time,
// unless the task is retried before: then its next ending is told. If the receiver fails for about a day, the delivery
// stays among the dead ones, from where an operator sends it again. Workers note the endings and front doors send them,
// so that a webhook's secret is on no machine where agents run. It does not promise an order.
//
// asynq keeps the deliveries, with its retries and its archive: unlike a run, a request takes seconds and can be
// repeated.
package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/errand-fleet/errand/internal/doctor"
	"github.com/errand-fleet/errand/internal/pattern"
	"github.com/errand-fleet/errand/tasks"
)

// Webhook is a receiver of endings.
type Webhook struct {
	Name    string // [a-z0-9-]
	URL     string
	Secret  string             // signs requests; only front doors need it
	Endings []tasks.EndingKind // that it wants; empty: all
	// patterns such as acme/*, of which one must match each repository of a task; empty: all tasks
	Repositories []string
}

func (w Webhook) wants(t tasks.Task, kind tasks.EndingKind) bool {
	return (len(w.Endings) == 0 || slices.Contains(w.Endings, kind)) && pattern.Covers(w.Repositories, t.Places()...)
}

// Config is what New needs. Redis is required.
type Config struct {
	Webhooks []Webhook
	Redis    *redis.Client
	// a task as receivers get it; only Deliver needs it
	Task func(ctx context.Context, id string) (body any, ended time.Time, err error)
	HTTP http.RoundTripper // nil: http.DefaultTransport
	Log  *slog.Logger      // nil: discard
}

// Webhooks notes and delivers endings. It is safe for concurrent use.
type Webhooks struct {
	cfg       Config
	client    *asynq.Client
	inspector *asynq.Inspector
	http      *http.Client
}

// New returns the webhooks. It closes no Redis client.
func New(cfg Config) *Webhooks {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Webhooks{
		cfg: cfg, client: asynq.NewClientFromRedisClient(cfg.Redis),
		inspector: asynq.NewInspectorFromRedisClient(cfg.Redis),
		http: &http.Client{
			Transport: cfg.HTTP, Timeout: answerLimit, CheckRedirect: func(*http.Request, []*http.Request) error {
				return http.ErrUseLastResponse
			},
		},
	}
}

const (
	// queue is asynq's queue of deliveries. No pool's queue has this name: they end with a class.
	queue    = "webhooks"
	taskType = "webhook"
	// maxRetries are about a day of attempts, at the pauses of pause.
	maxRetries = 32
	// kept is how long asynq remembers what was delivered, so that an ending that is noted twice is delivered once.
	kept = 7 * 24 * time.Hour
)

// note is what asynq keeps of a delivery.
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
func (w *Webhooks) Note(ctx context.Context, t tasks.Task, kind tasks.EndingKind, ended time.Time) error {
	for _, hook := range w.cfg.Webhooks {
		if !hook.wants(t, kind) {
			continue
		}
		n := note{Webhook: hook.Name, Task: t.ID, Ended: ended}
		payload, err := json.Marshal(n)
		if err != nil {
			return fmt.Errorf("encode delivery: %w", err)
		}
		_, err = w.client.EnqueueContext(ctx, asynq.NewTask(taskType, payload), asynq.Queue(queue),
			asynq.TaskID(n.id()),
			asynq.MaxRetry(maxRetries), asynq.Timeout(2*answerLimit), asynq.Retention(kept))
		if err != nil && !errors.Is(err, asynq.ErrTaskIDConflict) {
			return fmt.Errorf("note ending for webhook %s: %w", hook.Name, err)
		}
	}
	return nil
}

// maxListed bounds what Undelivered returns of each kind.
const maxListed = 1000

// Undelivered returns the deliveries that have failed: the dead ones first, and then those that are tried again.
func (w *Webhooks) Undelivered(context.Context) ([]tasks.Undelivered, error) {
	list := []tasks.Undelivered{}
	for _, read := range []func(string, ...asynq.ListOption) ([]*asynq.TaskInfo, error){
		w.inspector.ListArchivedTasks, w.inspector.ListRetryTasks,
	} {
		found, err := read(queue, asynq.PageSize(maxListed))
		if errors.Is(err, asynq.ErrQueueNotFound) { // asynq creates it with its first task
			return list, nil
		}
		if err != nil {
			return nil, fmt.Errorf("list deliveries of webhooks: %w", err)
		}
		for _, t := range found {
			var n note
			if err := json.Unmarshal(t.Payload, &n); err != nil {
				return nil, fmt.Errorf("read delivery %s: %w", t.ID, err)
			}
			u := tasks.Undelivered{
				ID: t.ID, Webhook: n.Webhook, Task: n.Task, Attempts: t.Retried, Failed: t.LastFailedAt,
				Problem: t.LastErr, Next: t.NextProcessAt,
			}
			if t.State == asynq.TaskStateArchived {
				u.Attempts++ // the last one has no retry
			}
			list = append(list, u)
		}
	}
	return list, nil
}

// troubled is after how many attempts, about a minute, a receiver counts as one that does not answer.
const troubled = 5

// Diagnose reports dead deliveries, or else a receiver that does not answer.
func (w *Webhooks) Diagnose(ctx context.Context) []doctor.Finding {
	if len(w.cfg.Webhooks) == 0 {
		return nil
	}
	all, err := w.Undelivered(ctx)
	if err != nil {
		return []doctor.Finding{{What: "webhooks", Why: err.Error()}}
	}
	return diagnose(all)
}

// diagnose says what deliveries that have failed mean.
func diagnose(all []tasks.Undelivered) []doctor.Finding {
	f := doctor.Finding{What: "webhooks"}
	dead := slices.DeleteFunc(slices.Clone(all), func(u tasks.Undelivered) bool { return !u.Next.IsZero() })
	retried := slices.DeleteFunc(slices.Clone(all), func(u tasks.Undelivered) bool { return u.Attempts < troubled })
	switch {
	case len(dead) > 0:
		f.Why = fmt.Sprintf("requests that were given up: %d, such as one to %s: %s",
			len(dead), dead[0].Webhook, dead[0].Problem)
		f.Remedy = "fix the receiver, list them with `enqueue webhooks`, and send them again with " +
			"`enqueue webhooks replay ID`"
	case len(retried) > 0:
		f.Why = fmt.Sprintf("requests fail, such as to %s: %s", retried[0].Webhook, retried[0].Problem)
		f.Remedy = "fix the receiver: errand tries again for a day, and `enqueue webhooks` lists the requests"
	}
	return []doctor.Finding{f}
}

// Replay sends a failed delivery again, now. It does nothing to one that is being sent, and returns [tasks.ErrNotFound]
// for any other.
func (w *Webhooks) Replay(_ context.Context, id string) error {
	info, err := w.inspector.GetTaskInfo(queue, id)
	switch {
	case errors.Is(err, asynq.ErrTaskNotFound) || errors.Is(err, asynq.ErrQueueNotFound):
		return tasks.ErrNotFound
	case err != nil:
	case info.State == asynq.TaskStatePending || info.State == asynq.TaskStateActive:
		return nil
	case info.State != asynq.TaskStateRetry && info.State != asynq.TaskStateArchived:
		return tasks.ErrNotFound
	default:
		err = w.inspector.RunTask(queue, id)
	}
	if err != nil {
		return fmt.Errorf("replay delivery %s: %w", id, err)
	}
	return nil
}
