package web

import (
	"bytes"
	"cmp"
	"context"
	"html/template"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/errand-fleet/errand/internal/legible"
	"github.com/errand-fleet/errand/tasks"
)

// Chat is the page on which people talk with agents.
type Chat struct {
	Source Poster // nil: nothing can be asked there

	// What there is to choose from; empty: whatever is written is tried, but for directories, of which there are none then.
	Repositories, Models, Efforts, Dirs []string
}

// Poster is the source of what is written on the page.
type Poster interface {
	// Post submits a form, and tells the name by which the next one goes on in the same conversation. An *InputError is for people.
	Post(ctx context.Context, d *tasks.Desk, form url.Values, pictures []tasks.Picture) (r tasks.Receipt, thread string, err error)
}

// What of the past is on the page.
const (
	chatTurns  = 50 // of a conversation
	chatRecent = 8  // conversations
)

// chatSource is the source whose threads are conversations of this page.
const chatSource = "chat"

// threadForm is how such a thread is named, without its source.
var threadForm = regexp.MustCompile(`^[a-z0-9-]{1,40}$`)

// turn is what was asked, and what came of it.
type turn struct {
	taskView

	Asked       []utterance   // what the run was asked: the task, and those it has absorbed
	Interrupted template.HTML // what had been said when it ended in another way than with an answer
}

// utterance is something that a person wrote.
type utterance struct{ Actor, Text, Pictures string }

// chatView is the page.
type chatView struct {
	Chat

	Thread  string // empty: a new conversation
	Turns   []turn
	Now     *turn // of Turns: the one that goes on; nil: none does
	Recent  []recent
	Trouble string // why an answer would not come now, in sentences

	Where string // the place in words
	chatFields
	Draft, Mistake string

	history // of Now
}

// chatFields are the fields of the form. In a conversation the place stays; agent, model, effort and whether only to plan are as they were the
// last time. Budget and timeout are of one message.
type chatFields struct {
	Repo, Branch, Dir, Agent, Model, Effort, Budget, Timeout string

	Plan bool
}

func fieldsOf(form url.Values) chatFields {
	return chatFields{
		Repo: form.Get("repo"), Branch: form.Get("branch"), Dir: form.Get("projectPath"), Agent: form.Get("agent"), Model: form.Get("model"),
		Effort: form.Get("effort"), Budget: form.Get("budget"), Timeout: form.Get("timeout"), Plan: form.Get("plan") != "",
	}
}

// recent is a conversation to go back to.
type recent struct {
	row

	Thread string
}

// chatPage shows a conversation, or the beginning of one.
func (h *Handler) chatPage(w http.ResponseWriter, r *http.Request) {
	thread := r.PathValue("thread")
	if thread != "" && !threadForm.MatchString(thread) {
		h.fail(w, r, problem{http.StatusNotFound, "No such conversation", "A conversation is named by at most 40 of a-z, 0-9 and dash."})
		return
	}
	h.showChat(w, r, http.StatusOK, chatView{Thread: thread, chatFields: fieldsOf(r.URL.Query())})
}

// showChat writes the page around a form.
func (h *Handler) showChat(w http.ResponseWriter, r *http.Request, status int, v chatView) {
	if b, ok := h.makeChatPage(w, r, v); ok {
		send(w, status, b)
	}
}

// makeChatPage waits for its turn; false when the page could not be made, which is then answered.
func (h *Handler) makeChatPage(w http.ResponseWriter, r *http.Request, v chatView) (*bytes.Buffer, bool) {
	done, ok := h.takeTurn(r.Context())
	if !ok {
		return nil, false
	}
	defer done()
	v.Chat = h.cfg.Chat
	seen, err := h.glance(r.Context())
	if err == nil && v.Thread != "" {
		err = h.converse(r.Context(), &v)
	} else if err == nil {
		v.Recent, err = h.recent(r.Context())
	}
	if err != nil {
		h.refuse(w, r, err)
		return nil, false
	}
	if v.Thread != "" && len(v.Turns) == 0 {
		h.fail(w, r, problem{http.StatusNotFound, "No such conversation", "There is no such conversation, or no more: tasks are kept for a week after their end."})
		return nil, false
	}
	v.Trouble = seen.trouble(h.now())
	return h.render(w, "chat", v)
}

// converse fills in what was said.
func (h *Handler) converse(ctx context.Context, v *chatView) error {
	past, err := h.cfg.Desk.Talked(ctx, chatSource+"/"+v.Thread, chatTurns)
	if err != nil {
		return err
	}
	for _, s := range past {
		asked := utterance{s.Task.Actor, legible.Text(s.Task.Prompt), pictureNames(s.Task)}
		if i := slices.IndexFunc(v.Turns, func(t turn) bool { return t.ID == s.Into }); i >= 0 {
			v.Turns[i].Asked = append(v.Turns[i].Asked, asked) // its answer is the run's
			continue
		}
		t := turn{taskView: h.taskView(s, history{}, tasks.Logged{}), Asked: []utterance{asked}}
		if e := s.Ending; e != nil && e.Kind != tasks.Answered {
			t.Interrupted = formatted(strings.TrimSpace(e.Result.Partial))
		}
		if s.Ending == nil && v.Now == nil {
			story := newTimeline()
			if v.history, err = h.history(ctx, s, "", story); err != nil {
				return err
			}
			if len(v.Entries) == 0 {
				v.Older = "" // nothing has been said
			}
			t.Meter = h.meter(s, story.Used)
			v.Now = &t
		}
		v.Turns = append(v.Turns, t)
	}
	if len(past) > 0 {
		t := past[len(past)-1].Task
		v.Repo, v.Branch, v.Dir = t.Repo, t.Ref, t.Dir
		v.Where = cmp.Or(t.Repo, t.Dir, "a scratch directory")
		if v.Draft == "" {
			v.Agent, v.Model, v.Effort, v.Plan = t.Options.Agent, t.Options.Model, t.Options.Effort, t.Options.Plan
		}
	}
	return nil
}

// recent lists the latest conversations.
func (h *Handler) recent(ctx context.Context) ([]recent, error) {
	found, err := h.cfg.Desk.List(ctx, tasks.Filter{Source: chatSource, Limit: 4 * chatRecent})
	if err != nil {
		return nil, err
	}
	var list []recent
	for _, s := range found.Tasks {
		thread, ok := strings.CutPrefix(s.Task.Thread, chatSource+"/")
		known := slices.ContainsFunc(list, func(r recent) bool { return r.Thread == thread })
		if ok && !known && len(list) < chatRecent {
			list = append(list, recent{h.row(show(s)), thread})
		}
	}
	return list, nil
}
