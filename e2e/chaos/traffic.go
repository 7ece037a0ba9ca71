package main

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/errand-fleet/errand/internal/fake/slackfake"
)

// traffic sends requests to errand as people and services do.
type traffic struct {
	w      *world
	base   string // of the front door
	ledger *ledger
	web    *http.Client

	pulls   chan step      // GitHub's steps, done one after the other
	under   sync.WaitGroup // deliveries under way
	streams sync.WaitGroup // chats that are read
	hangUp  chan struct{}  // closed to stop reading them

	roots   map[int]string // Slack's threads; used only by the goroutine of play
	numbers map[int]int    // GitHub's pull requests; used only by the goroutine of github

	mu     sync.Mutex
	counts map[string]int // what was done, as the report names it
}

func newTraffic(w *world, base string) *traffic {
	w.github.Deliver(base + "/github/webhook")
	w.slack.Deliver(base + "/slack/events")
	return &traffic{
		w: w, base: base, ledger: newLedger(), web: &http.Client{}, pulls: make(chan step, 1000),
		hangUp: make(chan struct{}), roots: map[int]string{}, numbers: map[int]int{}, counts: map[string]int{},
	}
}

func (t *traffic) count(what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts[what]++
}

// play sends all requests at their times and returns when every delivery is accepted or given up. Streams of chats can
// still be open then.
func (t *traffic) play(ctx context.Context, steps []step) {
	t.under.Go(func() { t.github(ctx) })
	begun := time.Now()
	for _, s := range steps {
		pause(ctx, s.at-time.Since(begun))
		if ctx.Err() != nil {
			break
		}
		switch {
		case s.cancel != "":
			t.under.Go(func() { t.cancel(ctx, s.cancel) })
		case s.place == inSlack:
			t.mention(ctx, s)
		case s.place == inGitHub:
			t.pulls <- s
		default:
			t.streams.Go(func() { t.chat(ctx, s) })
		}
	}
	close(t.pulls)
	t.under.Wait()
}

// leave closes all chats, also those whose tasks never end.
func (t *traffic) leave() {
	close(t.hangUp)
	t.streams.Wait()
}

// The pauses between redeliveries of an event that was not accepted, which double up to a maximum, and their total
// time. Slack's pauses are longer and fewer, and GitHub leaves redelivery to people; the outages here are shorter than
// theirs.
const (
	firstAgain   = 500 * time.Millisecond
	longestAgain = 10 * time.Second
	deliverFor   = 2 * time.Minute
)

// deliver tries until a delivery is accepted; false when it was given up.
func (t *traffic) deliver(ctx context.Context, what string, send func(context.Context) error) bool {
	begun, wait := time.Now(), firstAgain
	for ctx.Err() == nil {
		err := send(ctx)
		if err == nil {
			return true
		}
		t.w.note("not accepted: %s: %v", what, err)
		t.count("deliveries repeated")
		if time.Since(begun) > deliverFor {
			break
		}
		pause(ctx, wait)
		wait = min(2*wait, longestAgain)
	}
	return false
}

// mention posts a message to the bot in Slack, in a new or an existing thread.
func (t *traffic) mention(ctx context.Context, s step) {
	h := t.w.home(s.thread)
	if s.thread%3 == 0 && len(t.w.homes) == 1 { // with several, errand would ask for one
		h.channel = withoutClone
	}
	root := t.roots[s.thread]
	ts, err := t.w.slack.Seed(slackfake.Message{
		Channel: h.channel, User: "U0ANN", ThreadTS: root, Text: "<@U0ERRAND> please do " + s.orders.String(),
	})
	if err != nil {
		t.w.note("say %s: %v", s.orders.Token, err)
		return
	}
	what := "mentions"
	if root == "" {
		root = ts
		t.roots[s.thread] = ts
	} else {
		what = "replies"
	}
	t.count(what)
	token := s.orders.Token
	t.ledger.add(event{
		token: token, place: inSlack, thread: fmt.Sprint(inSlack, s.thread), id: slackID(ts, h.channel),
		channel: h.channel, root: root, pool: h.pool,
	})
	t.under.Go(func() {
		pause(ctx, s.late)
		send := func(kind string) func(context.Context) error {
			return func(ctx context.Context) error { return t.w.slack.Redeliver(ctx, ts, kind) }
		}
		if s.twin {
			t.count("events twice in other words")
			t.under.Go(func() { t.deliver(ctx, token+" as a message", send(slackfake.MessageEvent)) })
		}
		if !t.deliver(ctx, token, send(slackfake.AppMention)) {
			return
		}
		t.accept(token)
		t.repeat(ctx, s, func() { _ = send(slackfake.AppMention)(ctx) })
	})
}

// accept notes that errand has taken an event.
func (t *traffic) accept(token string) {
	t.ledger.change(token, func(e *event) { e.accepted, e.acceptedAt = true, time.Now() })
	t.w.note("accepted: %s", token)
}

// repeat redelivers an accepted event.
func (t *traffic) repeat(ctx context.Context, s step, send func()) {
	for i := range s.again {
		pause(ctx, time.Duration(i+1)*time.Second)
		t.count("duplicates")
		send()
	}
}
