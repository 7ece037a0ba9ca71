package console

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"html/template"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/display"
	"github.com/errand-fleet/errand/internal/markdown"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/people"
	"github.com/errand-fleet/errand/tasks/policy"
	"github.com/errand-fleet/errand/web/internal/respond"
)

// Chat configures the chat page.
type Chat struct {
	Source Poster // nil: there is no chat

	// Repositories, Models, Efforts and Dirs are offered to choose from. With an empty list any value may be typed in;
	// without Dirs there are no local directories.
	Repositories, Models, Efforts, Dirs []string
}

// Poster is the source of messages from the chat page.
type Poster interface {
	// Post submits a form and returns the name of the conversation, which the next form continues. The sentence of an
	// *InputError is for the person who sent the form.
	Post(ctx context.Context, d *desk.Desk, form url.Values, pictures []tasks.Picture) (r desk.Receipt,
		thread string, err error)
}

const (
	chatTurns  = 50 // shown of a conversation
	chatRecent = 8  // recent conversations that are listed

	// maxMessage bounds a form: a message of 1 MiB, which is up to three times as long when encoded, and pictures of 8
	// MiB.
	maxMessage = 12 << 20

	// chatSource is the source whose threads are conversations of this page.
	chatSource = "chat"
)

// threadName matches the name of a conversation: its thread without the source.
var threadName = regexp.MustCompile(`^[a-z0-9-]{1,40}$`)

// turn is a task of a conversation and its answer.
type turn struct {
	taskView

	Asked       []utterance   // the prompts of the task and of those it absorbed
	Interrupted template.HTML // the partial answer of a run that ended without one
}

// utterance is a message of a person.
type utterance struct {
	Actor, Pictures string
	Text            template.HTML
}

// chatView is the chat page.
type chatView struct {
	Chat

	Thread  string // empty: a new conversation
	Turns   []turn
	Now     *turn        // the turn that has not ended; nil if none
	Changes *changesView // of the latest turn with changes; nil if none
	Recent  []recent
	Trouble string // why a message would not be answered now, in sentences

	Where string // the repository or directory

	// Form has the values of the form. In a conversation the repository or directory stays; agent, model, effort,
	// profile and plan default to the last message's. Budget and timeout apply to one message.
	Form           url.Values
	Draft, Mistake string

	history // of Now
}

// recent is a conversation in the list.
type recent struct {
	row

	Thread string
}

// chatPage shows a conversation, or the form for a new one.
func (c *Console) chatPage(w http.ResponseWriter, r *http.Request) error {
	thread := r.PathValue("thread")
	if thread != "" && !threadName.MatchString(thread) {
		return respond.Error(http.StatusNotFound, "No such conversation",
			"The name of a conversation has at most 40 characters of a-z, 0-9 and dash.")
	}
	return c.showChat(w, r, http.StatusOK, chatView{Thread: thread, Form: r.URL.Query()})
}

// showChat writes the page with a form's values.
func (c *Console) showChat(w http.ResponseWriter, r *http.Request, status int, v chatView) error {
	b, err := c.renderChat(r.Context(), v)
	if err == nil {
		respond.HTML(w, status, b)
	}
	return err
}

func (c *Console) renderChat(ctx context.Context, v chatView) (*bytes.Buffer, error) {
	v.Chat = c.Chat
	if visitor := people.VisitorOf(ctx); !visitor.Has(policy.Start) {
		v.Repositories = slices.DeleteFunc(slices.Clone(v.Repositories), func(repo string) bool {
			return !visitor.May(ctx, policy.Start, repo).Allowed
		})
		if !visitor.May(ctx, policy.Use, "").Allowed {
			v.Dirs = nil
		}
	}
	fleet, err := c.View.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	var past []tasks.Status
	if v.Thread != "" {
		past, err = c.View.Desk.History(ctx, chatSource+"/"+v.Thread, chatTurns)
	} else {
		v.Recent, err = c.recent(ctx)
	}
	if err != nil {
		return nil, err
	}
	if v.Thread != "" && len(past) == 0 {
		return nil, respond.Error(http.StatusNotFound, "No such conversation",
			"The conversation does not exist, or was deleted: tasks are kept for a week after they end.")
	}
	release, err := c.renderSlot(ctx) // not before: the forge may be asked what the visitor may read
	if err != nil {
		return nil, err
	}
	defer release()
	if err := c.readTurns(ctx, past, &v); err != nil {
		return nil, err
	}
	v.Trouble = fleet.Trouble(c.View.Now())
	return c.Out.Render(ctx, "chat", v)
}

// readTurns reads the turns of a conversation from its tasks. The fields of the form default to those of the last task.
func (c *Console) readTurns(ctx context.Context, past []tasks.Status, v *chatView) error {
	now := c.View.Now()
	for _, s := range past {
		asked := utterance{display.Line(s.Name()), pictureNames(s.Task), formatMarkdown(s.Task.Prompt)}
		if i := slices.IndexFunc(v.Turns, func(t turn) bool { return t.ID == s.Into }); i >= 0 {
			v.Turns[i].Asked = append(v.Turns[i].Asked, asked) // absorbed: the other task's run answers it
			continue
		}
		t := turn{taskView: newTaskView(c.View.NewTask(s), history{}, desk.Logged{}, now), Asked: []utterance{asked}}
		if e := s.Ending; e != nil && e.Kind != tasks.Answered {
			t.Interrupted = formatMarkdown(strings.TrimSpace(e.Result.Partial))
		}
		if s.Ending == nil && v.Now == nil {
			var err error
			events := newTimeline()
			if v.history, err = c.readHistory(ctx, s, "", events); err != nil {
				return err
			}
			if len(v.Entries) == 0 {
				v.Older = ""
			}
			t.Meter = newMeter(s, events.Used, now)
			v.Now = &t
		}
		v.Turns = append(v.Turns, t)
	}
	for i := len(past) - 1; i >= 0 && v.Changes == nil; i-- {
		v.Changes = c.shortChanges(ctx, past[i])
	}
	if len(past) > 0 {
		t := past[len(past)-1].Task
		v.Where = cmp.Or(strings.Join(t.Repositories(), ", "), t.Dir, "a scratch directory")
		fields := map[string]string{
			"repo": strings.Join(t.Repositories(), ","), "branch": t.Ref, "projectPath": t.Dir,
			"directory": t.Options.Directory,
		}
		if v.Draft == "" {
			fields["agent"], fields["model"], fields["effort"], fields["plan"] =
				t.Options.Agent, t.Options.Model, t.Options.Effort, ""
			fields["profile"] = string(t.Profile)
			if t.Options.Plan {
				fields["plan"] = "1"
			}
		}
		for name, value := range fields {
			v.Form.Set(name, value)
		}
	}
	return nil
}

// recent lists the latest conversations.
func (c *Console) recent(ctx context.Context) ([]recent, error) {
	found, err := c.View.Desk.List(ctx, desk.Filter{Source: chatSource, Limit: 4 * chatRecent})
	if err != nil {
		return nil, err
	}
	var list []recent
	for _, s := range found.Tasks {
		thread, ok := strings.CutPrefix(s.Task.Thread, chatSource+"/")
		known := slices.ContainsFunc(list, func(r recent) bool { return r.Thread == thread })
		if ok && !known && len(list) < chatRecent {
			list = append(list, recent{newRow(c.View.NewTask(s), c.View.Now()), thread})
		}
	}
	return list, nil
}

// postChat submits a message and redirects to its conversation.
func (c *Console) postChat(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, maxMessage)
	err := r.ParseForm() // ParseMultipartForm would hide its error
	if err == nil {
		err = r.ParseMultipartForm(maxMessage) //nolint:gosec // the body is bounded above
	}
	if err != nil && !errors.Is(err, http.ErrNotMultipart) {
		return respond.Error(http.StatusBadRequest, "Invalid form",
			"A message can have at most 1 MiB of text and 8 MB of pictures.")
	}
	if c.Chat.Source == nil {
		return respond.Error(http.StatusNotFound, "No chat", "Chat is not available here.")
	}
	draft := r.PostForm.Get("message")
	pictures, texts, err := readFiles(r.MultipartForm)
	var thread string
	if err == nil {
		r.PostForm.Set("message", draft+texts)
		_, thread, err = c.Chat.Source.Post(r.Context(), c.View.Desk, r.PostForm, pictures)
	}
	if mistake, ok := errors.AsType[*tasks.InputError](err); ok {
		v := chatView{Form: r.PostForm, Draft: draft, Mistake: mistake.Sentence}
		if t := r.PostForm.Get("thread"); threadName.MatchString(t) {
			v.Thread = t
		}
		if len(pictures) > 0 || texts != "" {
			v.Mistake += " Choose the files again as well."
		}
		return c.showChat(w, r, http.StatusUnprocessableEntity, v)
	}
	if err == nil {
		http.Redirect(w, r, "/chat/"+thread+"?sent#latest", http.StatusSeeOther) //nolint:gosec // the source has named it
	}
	return err
}

// readFiles reads the files of a form. Those with text become Markdown, which goes behind the message; all others must
// be pictures.
func readFiles(form *multipart.Form) (pictures []tasks.Picture, texts string, err error) {
	if form == nil {
		return nil, "", nil
	}
	for _, header := range form.File["file"] {
		if header.Filename == "" {
			continue
		}
		f, err := header.Open()
		if err != nil {
			return nil, "", fmt.Errorf("open attached file: %w", err)
		}
		data, err := io.ReadAll(f)
		_ = f.Close()
		if err != nil {
			return nil, "", fmt.Errorf("read attached file: %w", err)
		}
		if utf8.Valid(data) && bytes.IndexByte(data, 0) < 0 && agent.PictureType(data) == "" {
			texts += "\n\nAttached file " + display.Line(header.Filename) + ":\n\n" + markdown.Fenced("", string(data))
			continue
		}
		p, err := tasks.NewPicture(header.Filename, data)
		if err != nil {
			return nil, "", err
		}
		pictures = append(pictures, p)
	}
	return pictures, texts, nil
}
