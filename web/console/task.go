package console

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/display"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/people"
	"github.com/errand-fleet/errand/tasks/policy"
	"github.com/errand-fleet/errand/web/internal/respond"
	"github.com/errand-fleet/errand/web/internal/view"
)

const (
	pageEvents = 500  // events on a task's page, which links to the older ones
	longPrompt = 1500 // bytes from which the prompt is folded
)

// taskView is the page of one task.
type taskView struct {
	row
	head
	wait
	Status          tasks.Status
	Prompt          string // empty if the title has all of it
	Long            bool   // the prompt is folded
	Pictures        string
	Sentence        string
	Answer, Partial template.HTML
	Published       template.HTML // the branch and pull request of the work
	Changes         *changesView  // nil: there are none
	Files           []attached    // by the agent
	Questions       []question    // that wait for an answer
	Votes           []tasks.Vote  // on the answer
	Delivery        string        // its page among those of the queues
	Meter           meter
	Attempts        []attempt
	Machines        []store.Worker // of the attempts; Seen is zero if it is no longer alive
	Egress          *egressView    // nil: nothing is to be said about it
	Instructions    []string       // what the repositories and the operator told the agent
	Settings        []policy.Setting
	Absorbed        []*entry // the messages that its run absorbed
	Covers          []string // further tasks that ended with it
	Errors          int      // failed steps on the page
	Log             string   // the URL of its log; empty if it has none
	May             may
	Live            bool // more events may follow
	history
}

// question is a question of the agent with its options.
type question struct {
	tasks.Question

	May bool // the visitor may answer it
}

func (q question) Formatted() template.HTML { return formatMarkdown(q.Text) }

// may is what the visitor may do with a task. The handlers check it again.
type may struct{ Answer, Stop, Retry, Chat, Raw, Others, Queues bool }

func (c *Console) may(ctx context.Context, t tasks.Task) may {
	v, desk := people.VisitorOf(ctx), c.View.Desk
	return may{
		Stop:  desk.Permits(ctx, t, policy.Stop),
		Retry: desk.Permits(ctx, t, policy.Operate), Chat: v.Role >= policy.User,
		Raw: v.Role >= policy.Viewer, Others: v.Role >= policy.Viewer, Queues: v.Operates(ctx, "") == nil,
	}
}

// history is the part of a task's timeline that a page shows.
type history struct {
	Entries   []*entry
	Skeletons []*entry
	After     string // the ID of the last event
	Older     string // the URL of the older events; empty if there are none
	Past      bool   // the page shows older events
}

func (c *Console) taskPage(w http.ResponseWriter, r *http.Request) error {
	before := r.URL.Query().Get("before")
	if !store.ValidEventID(before) {
		return respond.BadQuery("before must be the ID of an event, such as 1700000000000-0.")
	}
	s, err := c.View.Task(r)
	if err != nil {
		return err
	}
	b, err := c.renderTask(r.Context(), s, before)
	if err == nil {
		respond.HTML(w, http.StatusOK, b)
	}
	return err
}

func (c *Console) renderTask(ctx context.Context, s tasks.Status, before string) (*bytes.Buffer, error) {
	release, err := c.renderSlot(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	t := newTimeline()
	past, err := c.readHistory(ctx, s, before, t)
	if err != nil {
		return nil, err
	}
	shown, err := c.View.Whole(ctx, s)
	if err != nil {
		return nil, err
	}
	v := newTaskView(shown, past, t.Used, c.View.Now())
	v.May = c.may(ctx, s.Task)
	for i := range v.Questions {
		q := &v.Questions[i]
		q.May = c.View.Desk.Permits(ctx, s.Task, q.Answering())
		v.May.Answer = v.May.Answer || q.May
	}
	v.head = newHead(s, c.Links(s.Task), c.View.Now())
	if shown.Reviewed != nil {
		v.addReview(*shown.Reviewed)
	}
	v.Changes, v.Files = c.shortChanges(ctx, s), c.attachedFiles(ctx, s)
	if v.Live && v.Changes != nil { // the steps are what matters: they come soon after
		for i := range v.Changes.Files {
			v.Changes.Files[i].Open = false
		}
	}
	if v.Opened && v.Changes != nil && len(s.Ending.Also) == 0 {
		v.Published = "" // the headline and the changes say the same
	}
	v.Machines = c.readMachines(ctx, v.Attempts)
	if s.State == string(store.Running) {
		if v.Doing = t.doing; v.Doing == "" && v.Detail == "" {
			v.Doing = tasks.Starting
		}
	}
	v.Absorbed, v.Errors = t.absorbed, t.errors
	if s.Ending != nil {
		v.Covers = slices.DeleteFunc(slices.Clone(s.Ending.Covers), func(id string) bool {
			return slices.ContainsFunc(t.absorbed, func(e *entry) bool { return e.Task == id })
		})
	}
	if v.wait, err = c.readWait(ctx, s); err != nil {
		return nil, err
	}
	if v.Class == "failed" && !v.May.Retry {
		v.Next = ""
	}
	if !v.May.Others {
		v.closeLinks()
	}
	return c.Out.Render(ctx, "task", v)
}

// closeLinks removes what leads a guest to pages that they may not see.
func (v *taskView) closeLinks() {
	v.Chat = ""
	for _, e := range slices.Concat(v.Entries, v.Absorbed) {
		e.Task = ""
	}
}

func newTaskView(t view.Task, past history, used desk.Logged, now time.Time) taskView {
	s := t.Status
	v := taskView{
		row: newRow(t, now), Status: s, Prompt: display.Text(s.Task.Prompt),
		Long: len(s.Task.Prompt) > longPrompt, Pictures: pictureNames(s.Task), Delivery: deliveryPath(s),
		Meter: newMeter(s, used, now), Live: s.Ending == nil && !past.Past, history: past, Attempts: attempts(s),
	}
	if strings.EqualFold(v.Prompt, v.Title) {
		v.Prompt = ""
	}
	for _, q := range s.Questions {
		v.Questions = append(v.Questions, question{Question: q})
	}
	for _, one := range s.Votes {
		v.Votes = append(v.Votes, tasks.Vote{
			Person: display.Line(one.Person), Vote: one.Vote, Reason: display.Text(one.Reason),
		})
	}
	if s.Worker != "" || s.Into != "" {
		v.Log = "/api/tasks/" + s.Task.ID + "/log"
	}
	if n := len(v.Entries); v.Live && n > 0 {
		v.Entries[n-1].Open = v.Entries[n-1].Kind == "text"
	}
	if e := s.Ending; e != nil {
		v.Sentence, v.Partial, v.Answer = display.Text(e.Sentence()), formatMarkdown(e.Partial()),
			formatMarkdown(answerMarkdown(e))
		v.Published = formatMarkdown(e.Note())
		v.Egress, v.Instructions = newEgressView(e.Result.Egress), e.Result.Instructions
		v.Settings = e.Settings
	}
	return v
}

// addReview shows the result of a review instead of the answer that it was made from.
func (v *taskView) addReview(r tasks.ReviewResult) {
	v.Answer, v.Sentence, v.Next = formatMarkdown(r.Text), "", ""
	switch {
	case !r.Waits:
	case v.Status.Task.Profile == agent.Untrusted:
		v.Next = "Next: push fixes. errand then reviews them."
	default:
		v.Next = "Next: push fixes, or comment /fix on the pull request to have errand make them."
	}
}

// pictureNames lists the pictures that came with a task.
func pictureNames(t tasks.Task) string {
	var names []string
	for _, p := range t.Pictures {
		names = append(names, display.Line(p.Name))
	}
	return strings.Join(names, ", ")
}

// readHistory reads the latest events, or the latest before an event's ID, into a timeline.
func (c *Console) readHistory(ctx context.Context, s tasks.Status, before string, t *timeline) (history, error) {
	id := s.Task.ID
	v := history{Past: before != "", Skeletons: skeletons()}
	events, more, err := c.View.Store.Events.ReadBefore(ctx, id, before, pageEvents)
	if err != nil {
		return v, fmt.Errorf("read events: %w", err)
	}
	for _, e := range events {
		v.After = e.ID
		if e.End {
			continue
		}
		l := desk.Logged{ID: e.ID}
		if err := json.Unmarshal(e.Data, &l.Event); err != nil {
			return v, fmt.Errorf("read event %s: %w", e.ID, err)
		}
		t.add(l)
	}
	v.Entries = t.Entries
	switch {
	case more:
		v.Older = "/tasks/" + id + "?before=" + events[0].ID
	case s.Worker != "" && s.Into == "" && !begins(v.Entries):
		v.Older = "/tasks/" + id + "/log" // the stream no longer has its beginning; the log has
	}
	return v, nil
}

// begins reports whether entries have the beginning of a run. Notes of errand may come before.
func begins(list []*entry) bool {
	i := slices.IndexFunc(list, func(e *entry) bool { return e.Kind != "notice" })
	return i >= 0 && list[i].Kind == "started"
}

// Ref returns the branch of the task, or an abbreviated commit.
func (v taskView) Ref() string {
	if ref := v.Status.Task.Ref; fullCommit.MatchString(ref) {
		return ref[:12]
	}
	return v.Status.Task.Ref
}

var fullCommit = regexp.MustCompile(`^[0-9a-f]{40}$`)

// button returns the handler of a button that changes a task.
func button(do func(*http.Request) (tasks.Status, error)) respond.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		s, err := do(r)
		return redirectBack(w, r, s.Task.ID, err)
	}
}

// answerQuestion is the buttons and the field below a question.
func (c *Console) answerQuestion(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, view.MaxAnswer)
	id, _, err := c.View.Answer(r, r.PostFormValue("question"), r.PostFormValue("answer"))
	return redirectBack(w, r, id, err)
}

// redirectBack returns to the page that a button was on: the task's, or that of the conversation which the form names.
// It returns err.
func redirectBack(w http.ResponseWriter, r *http.Request, id string, err error) error {
	if err != nil {
		return err
	}
	to := "/tasks/" + id
	if thread := r.PostFormValue("thread"); threadName.MatchString(thread) {
		to = "/chat/" + thread + "#latest"
	}
	http.Redirect(w, r, to, http.StatusSeeOther) //nolint:gosec // both were validated and are local paths
	return nil
}
