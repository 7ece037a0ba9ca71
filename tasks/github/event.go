package github

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/untrusted"
	"github.com/errand-fleet/errand/internal/words"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/thread"
	"github.com/errand-fleet/errand/tasks/intake"
)

// interpreter turns events and comments into tasks. It is safe for concurrent use.
type interpreter struct {
	shared
	desk       *tasks.Desk
	repository func(name string) bool   // reports whether events of a repository count; nil if all do
	base       func(name string) string // base branch of work on an issue, or "" for the default branch
	quiet      time.Duration
}

// handler handles a delivery. It submits tasks, or does work that needs no agent, and says what it did.
type handler func(*interpreter, context.Context, delivery) (outcome string, err error)

// handlers has the actions of each event that errand handles. All others are ignored.
var handlers = map[string]handler{
	"pull_request " + actionOpened:                 (*interpreter).review,
	"pull_request synchronize":                     (*interpreter).review,
	"pull_request reopened":                        (*interpreter).review,
	"pull_request ready_for_review":                (*interpreter).review,
	"pull_request " + requestedReview:              (*interpreter).review,
	"pull_request " + actionEdited:                 (*interpreter).retargeted,
	"pull_request " + actionLabeled:                (*interpreter).labeled,
	"pull_request " + actionClosed:                 (*interpreter).endReviews,
	"pull_request converted_to_draft":              (*interpreter).endReviews,
	"issues " + actionOpened:                       (*interpreter).remark,
	"issues " + actionLabeled:                      (*interpreter).startIssue,
	"issues " + actionAssigned:                     (*interpreter).startIssue,
	"issues " + actionClosed:                       (*interpreter).endIssue,
	"issues " + actionDeleted:                      (*interpreter).endIssue,
	"issues transferred":                           (*interpreter).endIssue,
	"issues locked":                                (*interpreter).endIssue,
	"issues " + actionEdited:                       (*interpreter).amend,
	"issue_comment created":                        (*interpreter).remark,
	"issue_comment " + actionEdited:                (*interpreter).amend,
	"issue_comment " + actionDeleted:               (*interpreter).withdraw,
	"pull_request_review_comment created":          (*interpreter).remark,
	"pull_request_review_comment " + actionDeleted: (*interpreter).withdraw,
	"pull_request_review submitted":                (*interpreter).remark,
	"check_run " + actionCompleted:                 (*interpreter).checked,
	"check_suite " + actionCompleted:               (*interpreter).checked,
	"workflow_run " + actionCompleted:              (*interpreter).checked,
	"status":                                       (*interpreter).checked, // it has no actions
	kindRemark:                                     (*interpreter).remark,
	kindStart:                                      (*interpreter).polledStart,
}

// What polls find has other kinds than GitHub's events.
const (
	polledEvent = "polled"
	kindRemark  = polledEvent + " remark"
	kindStart   = polledEvent + " start"
)

// The actions that several events have.
const (
	actionEdited    = "edited" // of the title, of the text, or of the base
	actionClosed    = "closed"
	actionDeleted   = "deleted"
	actionCompleted = "completed"
)

// delivery is one webhook with a correct signature.
type delivery struct {
	id, event, action string
	payload           []byte
	again             bool // an attempt to interpret it has failed

	// The payload, decoded once by decode into the field for the event.
	pull   *github.PullRequestEvent // use its getters: the head of a deleted fork has no repository
	remark *remarkEvent
	check  *checkEvent
}

// ignored is the reason why an event becomes no task. This is the usual case and not a failure.
type ignored struct {
	why   string
	level slog.Level // of the log line; operators need only the reasons for pull requests
}

func (e ignored) Error() string { return e.why }

// interpret does what an event asks for. Doing it again changes nothing.
func (i *interpreter) interpret(ctx context.Context, e intake.Event) (outcome string, err error) {
	handle := handlers[e.Kind]
	if handle == nil {
		return "", fmt.Errorf("this front door does not know the event %s, a newer one might", e.Kind)
	}
	d := delivery{id: e.ID, payload: e.Body, again: e.Again}
	d.event, d.action, _ = strings.Cut(e.Kind, " ")
	if err = d.decode(); err == nil {
		err = d.validate()
	}
	if err == nil {
		outcome, err = handle(i, ctx, d)
	}
	log := i.log.With("delivery", e.ID, "event", d.event)
	if why, ok := errors.AsType[ignored](err); ok {
		log.Log(ctx, why.level, "webhook ignored", "why", why.why)
		return "Ignored: " + why.why, nil
	}
	if input, ok := errors.AsType[*tasks.InputError](err); ok {
		log.Warn("webhook refused", "why", input.Sentence)
		return "Refused: " + input.Sentence, nil
	}
	if err != nil {
		return "", i.api.ReportError("interpret "+e.Kind, err)
	}
	return outcome, nil
}

// decode decodes the payload into the field for its event.
func (d *delivery) decode() (err error) {
	switch d.event {
	case "pull_request":
		d.pull = new(github.PullRequestEvent)
		err = readPayload(d.payload, d.pull)
	case "issues", "issue_comment", "pull_request_review_comment", "pull_request_review":
		d.remark, err = readRemarkEvent(*d)
	case polledEvent:
		d.remark = &remarkEvent{again: d.again}
		err = json.Unmarshal(d.payload, d.remark)
	default:
		d.check = new(checkEvent)
		err = readPayload(d.payload, d.check)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", intake.ErrUnreadable, err)
	}
	return nil
}

// readPayload decodes what it can: a field that has another type than today counts as absent, because a change of what
// errand does not read must not cost an event. validate finds what is missing.
func readPayload(data []byte, v any) error {
	err := json.Unmarshal(data, v)
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return nil
	}
	return err
}

// validate refuses a payload that lacks required fields.
func (d *delivery) validate() error {
	switch e := d.pull; {
	case d.remark != nil:
		return d.remark.validate()
	case e != nil && (e.GetRepo().GetFullName() == "" || e.GetPullRequest().GetNumber() == 0 ||
		e.GetPullRequest().GetHead().GetSHA() == ""):
		return fmt.Errorf("%w: it contains no pull request", intake.ErrUnreadable)
	}
	return nil
}

// draft is a task before it is submitted. Only submit marshals its origin.
type draft struct {
	tasks.Task
	origin origin
	pr     *github.PullRequest // nil for an issue

	// Of reviews.
	me  string  // errand's login; "" if GitHub did not return it
	why ignored // why no review is wanted; zero if one is
}

// task returns the task with its marshaled origin.
func (t draft) task() (tasks.Task, error) {
	var err error
	if t.Origin, err = json.Marshal(t.origin); err != nil {
		return tasks.Task{}, fmt.Errorf("marshal origin: %w", err)
	}
	return t.Task, nil
}

// submit submits a task.
func (i *interpreter) submit(ctx context.Context, d draft) (tasks.Receipt, error) {
	t, err := d.task()
	if err != nil {
		return tasks.Receipt{}, err
	}
	return i.desk.Submit(ctx, t)
}

// submitted is submit for a task that needs nothing else. It returns the response to the webhook.
func (i *interpreter) submitted(ctx context.Context, d draft) (response string, err error) {
	receipt, err := i.submit(ctx, d)
	if err != nil {
		return "", err
	}
	return "Task " + receipt.ID, nil
}

// origin is where a task came from and where its report goes. It keeps more than is used today, because the state at
// the time of the event cannot be read later.
type origin struct {
	thread.Ref
	Issue   int64  `json:"issue,omitempty"` // ID of the issue; 0 for a pull request
	Head    string `json:"head"`            // commit; "" for an issue
	Base    string `json:"base"`            // branch; "" for the default branch, for an issue
	BaseSHA string `json:"base_sha"`
	Title   string `json:"title"`          // on one line, without hidden text
	Body    string `json:"body,omitempty"` // the description, without hidden text
	URL     string `json:"html_url"`
	Action  string `json:"action"`
	// who approved this head of a fork; their permission is checked later
	ApprovedBy string        `json:"approved_by,omitempty"`
	Full       bool          `json:"full,omitempty"`  // also what the last review has covered
	Asked      *request      `json:"asked,omitempty"` // nil if no one requested the task
	Also       []thread.Spot `json:"also,omitempty"`  // more comments that requested the same, for an earlier head
}

// originOf decodes the origin of a task.
func originOf(t tasks.Task) (origin, error) {
	var o origin
	if err := json.Unmarshal(t.Origin, &o); err != nil {
		return o, fmt.Errorf("read origin of task %s: %w", t.ID, err)
	}
	return o, nil
}

// originOfPull returns the origin of a task for a pull request in its present state. Later edits are not part of the
// request.
func originOfPull(repo string, pr *github.PullRequest) origin {
	head, base := pr.GetHead(), pr.GetBase()
	o := origin{
		Ref:  thread.Ref{Repo: repo, Number: pr.GetNumber()},
		Head: head.GetSHA(), Base: base.GetRef(), BaseSHA: base.GetSHA(), URL: pr.GetHTMLURL(),
	}
	o.Title, o.Body = clipTexts(pr.GetTitle(), pr.GetBody())
	return o
}

// clipTexts returns a title and a description without hidden text and shortened to their limits.
func clipTexts(title, body string) (string, string) {
	return untrusted.Line(title, 200), untrusted.Cut(words.Markdown(body, "").All, maxDescription)
}

// kind returns "issue" or "pull request".
func (o origin) kind() string {
	if o.Issue != 0 {
		return "issue"
	}
	return "pull request"
}

// what returns the name of the issue or pull request for people and agents.
func (o origin) what() string { return o.kind() + " " + o.String() }

// review submits the review of a pull request that was opened or changed, or whose review was requested.
func (i *interpreter) review(ctx context.Context, d delivery) (response string, err error) {
	t, err := i.reviewOf(ctx, d)
	if err != nil {
		return "", err
	}
	return i.replaceReviews(ctx, t)
}

// retargeted submits the review of a pull request whose base has changed: its changes and its rules are others now.
func (i *interpreter) retargeted(ctx context.Context, d delivery) (response string, err error) {
	if d.pull.GetChanges().GetBase() == nil {
		return "", ignored{"The base of the pull request is the same.", slog.LevelDebug}
	}
	return i.review(ctx, d)
}

// reviewOf returns the review task for an event, with the reason if no review is wanted.
func (i *interpreter) reviewOf(ctx context.Context, d delivery) (draft, error) {
	e := d.pull
	pr, repo := e.GetPullRequest(), e.GetRepo().GetFullName()
	if err := i.worksOn(repo); err != nil {
		return draft{}, err
	}
	me, err := i.api.Forge.Login(ctx)
	if err != nil {
		return draft{}, err
	}
	o := originOfPull(repo, pr)
	o.Installation, o.Action = e.GetInstallation().GetID(), d.action
	t := i.reviewTask(tasks.NewID(pr.GetUpdatedAt().Time, sourceName, d.id), e.GetSender().GetLogin(), pr, o)
	t.me = me
	if d.action == "synchronize" {
		t.NotBefore = i.now().Add(i.quiet)
	}
	asked := d.action == requestedReview
	if why := unwanted(pr, t.Actor, me); why != "" {
		t.why = ignored{why, slog.LevelInfo}
	} else if asked && (me == "" || e.GetRequestedReviewer().GetLogin() != me) {
		t.why = ignored{"The review was requested from someone else.", slog.LevelDebug}
	} else if s := e.GetSender(); (asked || d.action == actionLabeled) &&
		!i.gate.mayCommand(s.GetLogin(), s.GetType() == "Bot").Allowed {
		// a bot's requests are not counted here, so this would never end
		t.why = ignored{"A bot requested it.", slog.LevelInfo}
	}
	return t, nil
}

// worksOn refuses repositories that errand does not work on.
func (i *interpreter) worksOn(repo string) error {
	if i.repository != nil && !i.repository(repo) {
		return ignored{"Repository " + repo + " is not configured.", slog.LevelInfo}
	}
	return nil
}

// reviewTask returns the task of reviewing a pull request.
func (i *interpreter) reviewTask(id, actor string, pr *github.PullRequest, o origin) draft {
	return draft{Task: tasks.Task{
		ID: id, Source: sourceName, Kind: kindReview, Thread: reviewThread(o), Class: tasks.Review,
		Profile: profileOf(pr, agent.Read),
		Repo:    o.Repo, Ref: o.Head, Actor: actor,
		Prompt: fmt.Sprintf("Review pull request #%d of %s: %s", o.Number, o.Repo, o.Title),
	}, origin: o, pr: pr}
}

// unwanted returns why a pull request is not reviewed, or "". It is called for the event and again before the run.
func unwanted(pr *github.PullRequest, actor, me string) string {
	switch {
	case pr.GetMerged():
		return "The pull request was merged."
	case pr.GetState() == "closed":
		return "The pull request was closed."
	case pr.GetDraft():
		return "The pull request is a draft."
	case pr.GetUser().GetType() == "Bot":
		return "The pull request was opened by a bot."
	case me != "" && (pr.GetUser().GetLogin() == me || actor == me):
		return "The pull request or the change is errand's own."
	}
	return ""
}
