package web

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/errand-fleet/errand/internal/legible"
	"github.com/errand-fleet/errand/tasks"
)

// pageEvents is how many events a task's page shows; it pages back to the older ones.
const pageEvents = 500

// maxMade is how many pages of tasks and conversations are made at once. Each may take some 20 MB meanwhile, and as many as come after a restart would, all
// at once, be too late for all.
const maxMade = 4

// fact is a line of a task's facts.
type fact struct {
	Name, Value string
	Tasks       []string // instead of Value
}

// taskView is the page of one task.
type taskView struct {
	row
	Prompt          string
	Long            bool // the prompt
	Facts           []fact
	Sentence        string
	Answer, Partial template.HTML
	Published       template.HTML    // what became of the work
	Questions       []tasks.Question // that wait for an answer
	Delivery        string           // its page among those of the queues
	Meter           meter
	Log             string // where its log is; empty: it has none
	Live            bool   // more may come
	history
}

// history is the part of a task's timeline that a page shows.
type history struct {
	Entries   []*entry
	Skeletons []*entry
	After     string // the last event of the page
	Older     string // where the older ones are; empty: there are none
	Past      bool   // these are older ones
}

func (h *Handler) taskPage(w http.ResponseWriter, r *http.Request) {
	before := r.URL.Query().Get("before")
	if !eventID(before) {
		h.fail(w, r, problem{http.StatusBadRequest, "Invalid query", "Before is the id of an event, such as 1700000000000-0."})
		return
	}
	s, ok := h.ask(w, r, h.cfg.Desk.Status)
	if !ok {
		return
	}
	if b, ok := h.makeTaskPage(w, r, s, before); ok {
		send(w, http.StatusOK, b)
	}
}

// takeTurn waits until a page with a timeline may be made; false when nobody waits for the page any more. Sending it is not part of the turn:
// readers take their time.
func (h *Handler) takeTurn(ctx context.Context) (done func(), ok bool) {
	select {
	case h.making <- struct{}{}:
		return func() { <-h.making }, true
	case <-ctx.Done():
		return nil, false
	}
}

// makeTaskPage waits for its turn; false when the page could not be made, which is then answered.
func (h *Handler) makeTaskPage(w http.ResponseWriter, r *http.Request, s tasks.Status, before string) (*bytes.Buffer, bool) {
	done, ok := h.takeTurn(r.Context())
	if !ok {
		return nil, false
	}
	defer done()
	t := newTimeline()
	past, err := h.history(r.Context(), s, before, t)
	if err != nil {
		h.refuse(w, r, err)
		return nil, false
	}
	return h.render(w, "task", h.taskView(s, past, t.Used))
}

func (h *Handler) taskView(s tasks.Status, past history, used tasks.Logged) taskView {
	v := taskView{
		row: h.row(show(s)), Prompt: legible.Text(s.Task.Prompt), Long: len(s.Task.Prompt) > longPrompt, Facts: facts(s), Questions: s.Questions,
		Delivery: deliveryPath(s), Meter: h.meter(s, used), Live: s.Ending == nil && !past.Past, history: past,
	}
	if s.Worker != "" || s.Into != "" {
		v.Log = "/api/tasks/" + s.Task.ID + "/log"
	}
	if n := len(v.Entries); v.Live && n > 0 {
		v.Entries[n-1].Open = v.Entries[n-1].Kind == "text"
	}
	if e := s.Ending; e != nil {
		v.Sentence, v.Partial, v.Answer = legible.Text(e.Sentence()), formatted(e.Partial()), formatted(answerOf(e))
		v.Published = formatted(e.Note())
	}
	return v
}

// longPrompt is from where on the request is folded, in bytes.
const longPrompt = 1500

// at is a moment in words; empty when it has not come.
func at(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}

// pictureNames lists the pictures that came with a task.
func pictureNames(t tasks.Task) string {
	var names []string
	for _, p := range t.Pictures {
		names = append(names, legible.Line(p.Name))
	}
	return strings.Join(names, ", ")
}

// facts are what there is to know about a task, without what is empty.
func facts(s tasks.Status) []fact {
	t := s.Task
	attempt, position, footer, mode := "", "", "", ""
	if t.Options.Plan {
		mode = "plan: nothing is changed"
	}
	var covers, into []string
	if s.Into != "" {
		into = []string{s.Into}
	}
	if s.Attempt > 0 {
		attempt = fmt.Sprint(s.Attempt)
	}
	if s.Position > 0 {
		position = fmt.Sprintf("%d before it in its thread", s.Position)
	}
	if s.Ending != nil {
		footer, covers = s.Ending.Footer(), s.Ending.Covers
	}
	var known []fact
	for _, f := range []fact{
		{Name: "asked by", Value: s.Asker()},
		{Name: "source", Value: t.Source + " " + t.Kind},
		{Name: "thread", Value: t.Thread},
		{Name: "class", Value: t.Class},
		{Name: "profile", Value: string(t.Profile)},
		{Name: "repository", Value: t.Repo},
		{Name: "ref", Value: t.Ref},
		{Name: "directory", Value: t.Dir},
		{Name: "agent", Value: t.Options.Agent},
		{Name: "model", Value: t.Options.Model},
		{Name: "effort", Value: t.Options.Effort},
		{Name: "mode", Value: mode},
		{Name: "pictures", Value: pictureNames(t)},
		{Name: "created", Value: at(s.Created)},
		{Name: "not before", Value: at(s.At)},
		{Name: "because", Value: s.Why},
		{Name: "started", Value: at(s.Started)},
		{Name: "ended", Value: at(s.Ended)},
		{Name: "waits", Value: position},
		{Name: "attempt", Value: attempt},
		{Name: "worker", Value: s.Worker},
		{Name: "cancelled by", Value: s.Cancel},
		{Name: "in the run of", Tasks: into},
		{Name: "ended with it", Tasks: covers},
		{Name: "run", Value: footer},
	} {
		if f.Value != "" || f.Tasks != nil {
			known = append(known, f)
		}
	}
	return known
}

// history reads the latest events before an event's ID, or of all, into a timeline.
func (h *Handler) history(ctx context.Context, s tasks.Status, before string, t *timeline) (history, error) {
	id := s.Task.ID
	v := history{Past: before != "", Skeletons: skeletons()}
	events, more, err := h.cfg.Store.EventsBefore(ctx, id, before, pageEvents)
	if err != nil {
		return v, fmt.Errorf("read events: %w", err)
	}
	first := time.Time{} // of the events
	for _, e := range events {
		v.After = e.ID
		if e.End {
			continue
		}
		l := tasks.Logged{ID: e.ID}
		if err := json.Unmarshal(e.Data, &l.Event); err != nil {
			return v, fmt.Errorf("read event %s: %w", e.ID, err)
		}
		if first.IsZero() {
			first = l.Event.Time
		}
		t.add(l)
	}
	v.Entries = t.Entries
	switch {
	case more:
		v.Older = "/tasks/" + id + "?before=" + events[0].ID
	case s.Worker != "" && s.Into == "" && (len(v.Entries) == 0 || v.Entries[0].Kind != "started"):
		v.Older = "/tasks/" + id + "/log" // the stream has lost its beginning, or never had it
		if !first.IsZero() {
			v.Older += "?until=" + strconv.FormatInt(first.UnixMilli(), 10)
		}
	}
	return v, nil
}
