package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/hibiken/asynq"

	"github.com/errand-fleet/errand/internal/fake/githubfake"
)

// github opens pull requests and pushes to them, one after the other, because the fake reports only its latest webhook.
// The webhooks are intercepted, and traffic delivers them.
func (t *traffic) github(ctx context.Context) {
	sink, err := newSink()
	if err != nil {
		t.w.note("no pull requests: %v", err)
		return
	}
	defer sink.close()
	t.w.github.Deliver(sink.url)
	for s := range t.pulls {
		if err := t.pull(ctx, s); err != nil {
			t.w.note("pull request %s: %v", s.orders.Token, err)
		}
	}
}

// pull makes one change and delivers its webhook. The orders are in a file, because errand writes the prompt.
func (t *traffic) pull(ctx context.Context, s step) error {
	files := map[string]string{"chaos.txt": s.orders.String() + "\n"}
	n, known := t.numbers[s.thread]
	var err error
	if known {
		t.count("pushes")
		_, err = t.w.github.PushPR(ctx, repository, n, files)
	} else {
		t.count("pull requests")
		n, err = t.w.github.OpenPR(ctx, githubfake.PR{
			Repo: repository, Head: "chaos-" + fmt.Sprint(s.thread), User: "ann", Files: files,
		})
		t.numbers[s.thread] = n
	}
	if err != nil {
		return err
	}
	token, head := s.orders.Token, t.w.github.Pulls(repository)[n-1].HeadSHA
	hook, id, err := t.hook(n, head)
	if err != nil {
		return fmt.Errorf("deliver %s: %w", token, err)
	}
	t.ledger.add(event{
		token: token, place: inGitHub, thread: fmt.Sprint(inGitHub, s.thread), id: id, pull: n, head: head,
		delivery: hook.GUID, pool: t.w.homes[0].pool,
	})
	t.under.Go(func() {
		pause(ctx, s.late)
		send := func(ctx context.Context) error { return t.webhook(ctx, token, hook) }
		if t.deliver(ctx, token, send) {
			t.accept(token)
			t.repeat(ctx, s, func() { _ = send(ctx) })
		}
	})
	return nil
}

// webhook delivers a webhook to the front door. A version without an inbox answers what became of it.
func (t *traffic) webhook(ctx context.Context, token string, d githubfake.Delivery) error {
	resp, err := t.w.github.Send(ctx, d.Event, nil, githubfake.SendOptions{
		GUID: d.GUID, Body: d.Body, To: t.base + "/github/webhook",
	})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	said, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode/100 != 2 {
		return fmt.Errorf("deliver webhook: answered %s: %s", resp.Status, said)
	}
	t.outcome(token, strings.TrimSpace(string(said)))
	return nil
}

// askOutcomes reads from the inbox what became of webhooks.
func (t *traffic) askOutcomes(inbox *asynq.Inspector) {
	for _, e := range t.ledger.all() {
		if e.place != inGitHub || e.task || e.declined != "" {
			continue
		}
		stored, err := inbox.GetTaskInfo("inbox", "github."+e.delivery)
		if err != nil || len(stored.Result) == 0 {
			continue // it waits, or Redis has lost it
		}
		t.outcome(e.token, string(stored.Result))
	}
}

// outcome notes what errand says has become of a webhook.
func (t *traffic) outcome(token, said string) {
	t.ledger.change(token, func(ev *event) {
		switch {
		case ev.task || ev.declined != "" || said == "Stored.": // in the inbox
		case strings.HasPrefix(said, "Task "):
			ev.task = true
		default:
			ev.declined = said
		}
	})
}

// hook finds the webhook of a head, and errand's ID for its task, which depends on the payload's time and the delivery,
// so that a repetition has the same. The latest webhook can be an earlier one if the fake could not deliver this one.
func (t *traffic) hook(pull int, head string) (d githubfake.Delivery, id string, err error) {
	for _, d := range slices.Backward(t.w.github.Deliveries("pull_request")) {
		var p struct {
			Number int `json:"number"`
			Pull   struct {
				Updated time.Time `json:"updated_at"`
				Head    struct {
					SHA string `json:"sha"`
				} `json:"head"`
			} `json:"pull_request"`
		}
		if err := json.Unmarshal(d.Body, &p); err != nil {
			return d, "", fmt.Errorf("read webhook: %w", err)
		}
		if p.Number == pull && p.Pull.Head.SHA == head {
			return d, fmt.Sprintf("%016d-github-%s", p.Pull.Updated.UnixMicro(), d.GUID), nil
		}
	}
	return d, "", fmt.Errorf("there is no webhook of pull request %d at %s", pull, head)
}

// sink accepts webhooks and does nothing.
type sink struct {
	web *http.Server
	url string
}

func newSink() (*sink, error) {
	ln, err := listen()
	if err != nil {
		return nil, err
	}
	s := &sink{web: &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}, url: "http://" + ln.Addr().String()} //nolint:gosec // of a fake in this process
	go func() { _ = s.web.Serve(ln) }()
	return s, nil
}

func (s *sink) close() { _ = s.web.Close() }
