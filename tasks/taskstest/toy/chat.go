// Package toy has the smallest chat and the smallest code host that errand can work with: what a new source and a new
// forge have to do, and nothing else. They use only what is public, so they show that the seams are. Their protocols
// are made up, they authenticate nobody, and they remember in memory what a service would.
package toy

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
)

// Place is where messages are posted: a room of a chat, or the conversation of an issue. It keeps them in order, and is
// safe for concurrent use.
type Place struct {
	Posted chan string // gets each final message; nil: nobody waits for them

	mu       sync.Mutex
	messages []string
}

// post posts a message with a hidden marker, unless one with the marker is there.
func (p *Place) post(text, marker string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.messages {
		if strings.Contains(m, marker) {
			return
		}
	}
	p.messages = append(p.messages, text+"\n"+marker)
	if p.Posted != nil {
		p.Posted <- text
	}
}

// Chat is a chat with one room, whose messages all are for errand.
type Chat struct{ Room *Place }

var (
	_ tasks.Source  = Chat{}
	_ desk.Listener = Chat{}
)

// Name is the prefix of the threads, and a part of the IDs of tasks.
func (Chat) Name() string { return "toychat" }

// message is an event of the chat.
type message struct {
	ID     string    `json:"id"`
	At     time.Time `json:"at"`
	Author string    `json:"author"`
	Text   string    `json:"text"`
	Thread string    `json:"thread"`
}

// Listen registers the route for events. A source with a signature checks it here, and stores the raw event in its
// inbox ([intake.Inbox]), which interprets it until that succeeds; here the sender has to send it again.
func (c Chat) Listen(_ context.Context, mux *http.ServeMux, d *desk.Desk) error {
	mux.HandleFunc("POST /toychat", func(w http.ResponseWriter, r *http.Request) {
		var m message
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			http.Error(w, "this is no message", http.StatusBadRequest)
			return
		}
		_, err := d.Submit(r.Context(), c.task(m))
		answer(w, err)
	})
	return nil
}

// task returns what a message asks for. Its ID depends on the event alone, so a repeated event is no second task.
func (c Chat) task(m message) tasks.Task {
	return tasks.Task{
		ID: tasks.NewID(m.At, c.Name(), m.ID), Source: c.Name(), Kind: "message", Thread: c.Name() + "/" + m.Thread,
		Class: tasks.Interactive, Profile: agent.Read, Actor: m.Author, Prompt: m.Text,
	}
}

// answer answers an event: a problem of the request is the sender's, any other one is worth another attempt.
func answer(w http.ResponseWriter, err error) {
	if input, ok := errors.AsType[*tasks.InputError](err); ok {
		http.Error(w, input.Sentence, http.StatusBadRequest)
		return
	}
	if err != nil {
		http.Error(w, "try again", http.StatusServiceUnavailable)
	}
}

// Brief adds to the prompt what the agent has to know of the place. It would also ask the policy whether the author
// may have this done.
func (Chat) Brief(context.Context, tasks.Task, string) (tasks.Brief, error) {
	return tasks.Brief{System: "You answer in a chat. Be brief."}, nil
}

// Capabilities would be, for example, to show why a task waits, and to ask people.
func (Chat) Capabilities() tasks.Capabilities { return tasks.Capabilities{} }

// Open returns the report of a task.
func (c Chat) Open(_ context.Context, t tasks.Task) (tasks.Report, error) {
	return report{c.Room, t.ID}, nil
}

// report posts the final message of a task. It shows nothing while the task runs.
type report struct {
	place *Place
	id    string
}

// Update drops the event.
func (report) Update(agent.Event) {}

// Close posts the answer, or why there is none, and what was published. It may be called again, by any process.
func (r report) Close(_ context.Context, e tasks.Ending) error {
	var parts []string
	for _, part := range []string{e.Sentence(), e.Said(), e.Note()} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	r.place.post(strings.Join(parts, "\n"), "<!-- errand "+r.id+" "+e.At.UTC().Format(time.RFC3339Nano)+" -->")
	return nil
}
