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
	"sync"
	"time"

	"github.com/hibiken/asynq"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/intake"
)

const (
	// deliveries that a front door makes at once, so that a receiver that hangs does not delay the others
	senders     = 8
	answerLimit = 10 * time.Second // for a response
	maxPause    = time.Hour        // between two attempts
)

// pause returns how long asynq waits after n failures: 2 s, doubling up to an hour.
func pause(n int, _ error, _ *asynq.Task) time.Duration {
	return min(2*time.Second<<min(n, 11), maxPause)
}

// Deliver starts sending what is noted by any worker, until stop is called. stop waits for the requests that are on
// their way, also if it is called again.
func (w *Webhooks) Deliver() (stop func(), err error) {
	server := asynq.NewServerFromRedisClient(w.cfg.Redis, asynq.Config{
		Concurrency: senders, Queues: map[string]int{queue: 1}, RetryDelayFunc: pause, ShutdownTimeout: 2 * answerLimit,
		Logger: tasks.AsynqLogger(w.cfg.Log), LogLevel: asynq.WarnLevel,
	})
	if err := server.Start(asynq.HandlerFunc(w.deliver)); err != nil {
		return nil, fmt.Errorf("start deliveries of webhooks: %w", err)
	}
	return sync.OnceFunc(server.Shutdown), nil // asynq's own returns at once while another call waits
}

// ended is the body of a request.
type ended struct {
	Event   string `json:"event"`
	Webhook string `json:"webhook"`
	Task    any    `json:"task"`
}

// deliver makes one attempt. asynq.SkipRetry makes a failure the last.
func (w *Webhooks) deliver(ctx context.Context, t *asynq.Task) error {
	var n note
	if err := json.Unmarshal(t.Payload(), &n); err != nil {
		return fmt.Errorf("read delivery: %w: %w", err, asynq.SkipRetry)
	}
	i := slices.IndexFunc(w.cfg.Webhooks, func(one Webhook) bool { return one.Name == n.Webhook })
	if i < 0 {
		return fmt.Errorf("errand.yaml has no webhook %s any more: %w", n.Webhook, asynq.SkipRetry)
	}
	task, at, err := w.cfg.Task(ctx, n.Task)
	switch {
	case errors.Is(err, tasks.ErrNotFound):
		return fmt.Errorf("the task is no longer kept: %w", asynq.SkipRetry)
	case err != nil:
		return err
	case !at.Equal(n.Ended):
		return nil // it was retried, and its next ending is another delivery
	}
	body, err := json.Marshal(ended{"task.ended", n.Webhook, task})
	if err != nil {
		return fmt.Errorf("encode task %s: %w: %w", n.Task, err, asynq.SkipRetry)
	}
	return w.post(ctx, w.cfg.Webhooks[i], n.id(), body)
}

// post sends a signed request. Its error contains nothing of the response but the status, and not the URL, which may
// have a token.
func (w *Webhooks) post(ctx context.Context, to Webhook, key string, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to.URL, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("the URL of webhook %s is invalid: %w", to.Name, asynq.SkipRetry)
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
	w.cfg.Log.Debug("webhook delivered", "webhook", to.Name, "delivery", key)
	return nil
}
