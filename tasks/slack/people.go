package slack

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/slack-go/slack"
)

const (
	knownFor  = 10 * time.Minute // what Slack said of a person
	maxKnown  = 10_000           // persons
	lookLimit = 1500 * time.Millisecond
)

// people remembers for a while what Slack says of those who talk to us.
type people struct {
	api *slack.Client
	now func() time.Time

	mu    sync.Mutex
	known map[string]*person
}

// person is one look, by whoever came first. What follows ready is written before that is closed.
type person struct {
	ready chan struct{}
	user  *slack.User
	err   error
	until time.Time // since when it is asked again
}

func newPeople(api *slack.Client, now func() time.Time) *people {
	return &people{api: api, now: now, known: map[string]*person{}}
}

// get asks Slack, unless somebody did or does. A failure is believed for as long as that of learning who we are.
func (p *people) get(ctx context.Context, id string) (*slack.User, error) {
	entry, first := p.entry(id)
	if first {
		entry.user, entry.err = p.look(ctx, id)
		p.mu.Lock()
		entry.until = p.now().Add(knownFor)
		if entry.err != nil {
			entry.until = p.now().Add(askAgain)
		}
		p.mu.Unlock()
		close(entry.ready)
	}
	select {
	case <-entry.ready:
		return entry.user, entry.err
	case <-ctx.Done():
		return nil, fmt.Errorf("look up user: %w", context.Cause(ctx))
	}
}

// entry is what is known of a person, or about to be; first means that the caller has to ask.
func (p *people) entry(id string) (entry *person, first bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if entry = p.known[id]; entry != nil && (entry.until.IsZero() || now.Before(entry.until)) {
		return entry, false
	}
	if len(p.known) >= maxKnown {
		for other := range p.known { // any: to be asked again costs one call
			delete(p.known, other)
			break
		}
	}
	entry = &person{ready: make(chan struct{})}
	p.known[id] = entry
	return entry, true
}

func (p *people) look(ctx context.Context, id string) (*slack.User, error) {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	user, err := p.api.GetUserInfoContext(ctx, id)
	switch code(err) {
	case "user_not_found", "user_not_visible": // nobody of ours
		return &slack.User{ID: id, IsStranger: true}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look up user: %w", err)
	}
	return user, nil
}
