package chat

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/sse"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
)

// event is one line of the stream. Which fields there are goes by the type:
//
//	task      id, thread: the first one; the thread is what to send with the next message. position: it waits for
//	          that many others
//	waiting   content: why it waits; another one may follow
//	token     content: a piece of the answer
//	tool_use  content, tool: what the agent does, in words
//	update    content: what it tells on its way
//	question  content, question, options: what it asks; answered at /api/tasks/{id}/answer with that question's key
//	answer    content: what it was answered; empty when it goes on without
//	absorbed  content: what else the run takes into account; with an id, that it is the run of that task which takes
//	          this one into account, where the work can be watched. The done of both is the same
//	done      result, usage, cost: the whole answer; note: what was published of the work
//	error     content, partial: one sentence for people, and what had been said until then
type event struct {
	Type    string       `json:"type"`
	ID      string       `json:"id,omitempty"`
	Thread  string       `json:"thread,omitempty"`
	Wait    int          `json:"position,omitempty"`
	Content *string      `json:"content,omitempty"`
	Tool    string       `json:"tool,omitempty"`
	Result  *string      `json:"result,omitempty"`
	Usage   *agent.Usage `json:"usage,omitempty"`
	Cost    *float64     `json:"cost,omitempty"` // US dollars
	Partial string       `json:"partial,omitempty"`
	Note    string       `json:"note,omitempty"`

	Question string   `json:"question,omitempty"`
	Options  []string `json:"options,omitempty"`
}

// stream writes the events of a task to its reader.
type stream struct{ *sse.Stream }

// stream writes a task's events, after the first one, until the task or life ends. A reader who leaves does not stop
// the task.
func (s *Source) stream(life context.Context, d *desk.Desk, w http.ResponseWriter, r *http.Request, first event) {
	id := first.ID
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(life, cancel)()
	out := &stream{sse.New(w)}
	out.Send("", "", first)
	defer out.KeepAlive(s.cfg.Heartbeat, cancel)()
	stopWaits := s.tellWaits(ctx, d, out, id)
	defer stopWaits()
	for l, err := range d.Follow(ctx, id, "") {
		if err != nil || l.End {
			break // finish looks at which of the two it was
		}
		if out.send(l); out.Err() != nil {
			return
		}
	}
	stopWaits()
	switch {
	case life.Err() != nil: // which may have ended the request as well
		out.interrupted(id)
	case ctx.Err() == nil:
		s.finish(ctx, d, out, id)
	}
}

// send writes the events that belong to the answer, and what the agent does for it.
func (s *stream) send(l desk.Logged) {
	switch e := l.Event; {
	case e.Kind == agent.Text && e.Parent == "": // words of sub-agents are for the agent
		s.Send(l.ID, "", event{Type: "token", Content: &e.Text})
	case e.Kind == agent.ToolUse:
		s.Send(l.ID, "", event{Type: "tool_use", Content: &e.Text, Tool: e.Tool})
	case e.Kind == tasks.Said:
		s.Send(l.ID, "", event{Type: "update", Content: &e.Text})
	case e.Kind == tasks.Asked:
		var q tasks.Question
		// after an error only the words are sent, and an answer goes to the only open question
		_ = json.Unmarshal(e.Input, &q)
		s.Send(l.ID, "", event{Type: "question", Content: &e.Text, Question: q.Key, Options: q.Options})
	case e.Kind == tasks.Replied:
		s.Send(l.ID, "", event{Type: "answer", Content: &e.Text})
	case e.Kind == tasks.Absorbed && e.Tool == "": // among the events of the absorbed task
		s.Send(l.ID, "", event{Type: "absorbed", ID: e.ToolID, Content: &e.Text})
	case e.Kind == tasks.Absorbed:
		s.Send(l.ID, "", event{Type: "absorbed", Content: &e.Text})
	}
}

// finish says how the task ended.
func (s *Source) finish(ctx context.Context, d *desk.Desk, out *stream, id string) {
	status, err := d.Status(ctx, id)
	if err != nil || status.Ending == nil {
		if err != nil && ctx.Err() == nil {
			s.cfg.Log.Warn("read ending", "run", id, "err", err)
		}
		out.interrupted(id)
		return
	}
	e := *status.Ending
	sentence := e.Sentence()
	if e.Kind == tasks.Answered {
		result, cost := cmp.Or(e.Result.Text, sentence), e.CostUSD()
		out.Send("", "", event{Type: "done", Result: &result, Usage: &e.Result.Usage, Cost: &cost, Note: e.Note()})
	} else {
		out.Send("", "", event{Type: "error", Content: &sentence, Partial: e.Said()})
	}
	out.Done()
}

// interrupted ends the stream of a task that continues.
func (s *stream) interrupted(id string) {
	text := "The stream was interrupted, but the task continues: see /tasks/" + id + "."
	s.Send("", "", event{Type: "error", Content: &text})
	s.Done()
}
