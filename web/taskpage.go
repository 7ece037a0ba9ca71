package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/errand-fleet/errand/tasks"
)

// maxLines bounds the events on a task's page; the log has them all.
const maxLines = 500

// line is one event on the page, or several pieces of the same text.
type line struct {
	Time             time.Time
	Kind, Tool, Text string
	Parent           string // the sub-agent that did it
	Error            bool
}

// fact is a line of a task's facts.
type fact struct{ Name, Value string }

// taskView is the page of one task.
type taskView struct {
	row
	Prompt            string
	Facts             []fact
	Sentence, Partial string
	Answer            string
	Questions         []tasks.Question // that wait for an answer
	Lines             []line
	Delivery          string // its page among those of the queues
	After             string // the last event that is in Lines
	Live              bool   // more may come
	Incomplete        bool   // there were more events than Lines
}

func (h *Handler) taskPage(w http.ResponseWriter, r *http.Request) {
	s, ok := h.ask(w, r, h.cfg.Desk.Status)
	if !ok {
		return
	}
	v := taskView{row: h.row(show(s)), Prompt: s.Task.Prompt, Facts: facts(s), Live: s.Ending == nil, Questions: s.Questions, Delivery: deliveryPath(s)}
	if e := s.Ending; e != nil {
		v.Sentence, v.Partial, v.Answer = e.Sentence(), e.Partial(), e.Result.Text
	}
	if err := h.history(r.Context(), &v); err != nil {
		h.refuse(w, r, err)
		return
	}
	h.page(w, http.StatusOK, "task", v)
}

// at is a moment in words; empty when it has not come.
func at(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}

// facts are what there is to know about a task, without what is empty.
func facts(s tasks.Status) []fact {
	t := s.Task
	attempt, position, footer, covers, published := "", "", "", "", ""
	if s.Attempt > 0 {
		attempt = fmt.Sprint(s.Attempt)
	}
	if s.Position > 0 {
		position = fmt.Sprintf("%d before it in its thread", s.Position)
	}
	if s.Ending != nil {
		footer, covers, published = s.Ending.Footer(), strings.Join(s.Ending.Covers, " "), s.Ending.Note()
	}
	var known []fact
	for _, f := range []fact{
		{"asked by", t.Actor},
		{"source", t.Source + " " + t.Kind},
		{"thread", t.Thread},
		{"class", t.Class},
		{"profile", string(t.Profile)},
		{"repository", t.Repo},
		{"ref", t.Ref},
		{"directory", t.Dir},
		{"agent", t.Options.Agent},
		{"model", t.Options.Model},
		{"effort", t.Options.Effort},
		{"created", at(s.Created)},
		{"not before", at(s.At)},
		{"because", s.Why},
		{"started", at(s.Started)},
		{"ended", at(s.Ended)},
		{"waits", position},
		{"attempt", attempt},
		{"worker", s.Worker},
		{"cancelled by", s.Cancel},
		{"in the run of", s.Into},
		{"ended with it", covers},
		{"run", footer},
		{"published", published},
	} {
		if f.Value != "" {
			known = append(known, f)
		}
	}
	return known
}

// history reads the events that there are. The desk's Follow would wait for more, so it asks the store.
func (h *Handler) history(ctx context.Context, v *taskView) error {
	const batch = 200
	for {
		events, err := h.cfg.Store.Events(ctx, v.ID, v.After, batch)
		if err != nil {
			return fmt.Errorf("read events: %w", err)
		}
		for _, e := range events {
			v.After = e.ID
			var l tasks.Logged
			if e.End {
				continue
			}
			if err := json.Unmarshal(e.Data, &l.Event); err != nil {
				return fmt.Errorf("read event %s: %w", e.ID, err)
			}
			v.add(l)
		}
		if len(events) < batch {
			return nil
		}
	}
}

// add appends an event, or continues the line before. static/task.js does the same with what comes later.
func (v *taskView) add(l tasks.Logged) {
	e := l.Event
	kind, last := string(e.Kind), len(v.Lines)-1
	switch {
	case kind == "turn_end": // its text was told in pieces
		return
	case (kind == "text" || kind == "thinking") && last >= 0 && v.Lines[last].Kind == kind && v.Lines[last].Parent == e.Parent:
		v.Lines[last].Text += e.Text
		return
	case len(v.Lines) == maxLines:
		v.Lines, v.Incomplete = v.Lines[1:], true
	}
	v.Lines = append(v.Lines, line{e.Time, kind, e.Tool, e.Text, e.Parent, e.Error})
}
