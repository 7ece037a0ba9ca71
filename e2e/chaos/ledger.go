package main

import (
	"sync"
	"time"
)

// event is one thing that was asked of errand.
type event struct {
	token  string
	place  place
	thread string // of all places; what is in one must run one after the other
	id     string // of its task, empty while unknown
	pool   string // whose workers run it

	accepted   bool // it was answered with 2xx
	forgiven   bool // accepted is not set, because Redis has lost it since
	acceptedAt time.Time
	delivery   string   // GitHub: of its webhook
	task       bool     // GitHub: it became a task
	declined   string   // GitHub: or errand's reason for ignoring it
	channel    string   // Slack
	root       string   // Slack: ts of the thread
	pull       int      // GitHub
	head       string   // GitHub
	endings    []string // chat: the texts of the terminal events that were read
	closed     bool     // chat: its stream is not read any more
}

// ledger records the requests. Safe for concurrent use.
type ledger struct {
	mu     sync.Mutex
	events []*event // in order of asking
	by     map[string]*event
}

func newLedger() *ledger { return &ledger{by: map[string]*event{}} }

func (l *ledger) add(e event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, &e)
	l.by[e.token] = &e
}

// change updates an event.
func (l *ledger) change(token string, do func(*event)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.by[token]; e != nil {
		do(e)
	}
}

// get returns a copy of an event, or the zero event if it was not sent yet.
func (l *ledger) get(token string) event {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.by[token]; e != nil {
		return *e
	}
	return event{}
}

// all returns copies of all events so far.
func (l *ledger) all() []event {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := make([]event, len(l.events))
	for i, e := range l.events {
		list[i] = *e
	}
	return list
}
