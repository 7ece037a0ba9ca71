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
	"github.com/errand-fleet/errand/tasks"
)

// interpreter turns events and comments into tasks. It is safe for concurrent use.
type interpreter struct {
	api        api
	gate       *gate
	settings   *settingsReader
	desk       *tasks.Desk
	memory     memory
	watched    func(repo string) bool
	repository func(name string) bool   // reports whether events of a repository count; nil if all do
	base       func(name string) string // base branch of work on an issue, or "" for the default branch
	quiet      time.Duration
	now        func() time.Time
	log        *slog.Logger
}

// handler handles a delivery. It submits tasks, or does work that needs no agent, and returns the response to the
// webhook.
type handler func(*interpreter, context.Context, delivery) (response string, err error)

// handlers has the actions of each event that errand handles. All others are answered with 202.
var handlers = map[string]map[string]handler{
	"pull_request": {
		actionOpened: (*interpreter).review, "synchronize": (*interpreter).review, "reopened": (*interpreter).review,
		"ready_for_review": (*interpreter).review, requestedReview: (*interpreter).review,
		actionEdited: (*interpreter).retargeted, actionLabeled: (*interpreter).labeled,
		actionClosed: (*interpreter).endReviews, "converted_to_draft": (*interpreter).endReviews,
	},
	"issues": {
		actionOpened:  (*interpreter).remark,
		actionLabeled: (*interpreter).startIssue, actionAssigned: (*interpreter).startIssue,
		actionClosed: (*interpreter).endIssue, actionDeleted: (*interpreter).endIssue,
		"transferred": (*interpreter).endIssue, "locked": (*interpreter).endIssue,
		actionEdited: (*interpreter).amend,
	},
	"issue_comment": {
		"created": (*interpreter).remark, actionEdited: (*interpreter).amend, actionDeleted: (*interpreter).withdraw,
	},
	"pull_request_review_comment": {"created": (*interpreter).remark, actionDeleted: (*interpreter).withdraw},
	"pull_request_review":         {"submitted": (*interpreter).remark},
	"check_run":                   {actionCompleted: (*interpreter).checked},
	"check_suite":                 {actionCompleted: (*interpreter).checked},
	"workflow_run":                {actionCompleted: (*interpreter).checked},
	"status":                      {"": (*interpreter).checked}, // it has no actions
}

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

	// The payload, decoded once by decode into the field for the event.
	pull   *github.PullRequestEvent // use its getters: the head of a deleted fork has no repository
	remark *remarkEvent
	check  *checkEvent

	after func(do func(context.Context)) // runs work after GitHub has its answer
}

// ignored is the reason why an event becomes no task. This is the usual case and not a failure.
type ignored struct {
	why   string
	level slog.Level // of the log line; operators need only the reasons for pull requests
}

func (e ignored) Error() string { return e.why }

// unreadable is a payload that does not match its event.
type unreadable struct{ error }

// act handles a delivery and returns the response to the webhook. The error is an ignored, an unreadable or an
// *tasks.InputError; any other error means that the event should be delivered again.
func (i *interpreter) act(ctx context.Context, d delivery) (response string, err error) {
	actions, known := handlers[d.event]
	if known {
		if err := d.decode(); err != nil {
			return "", err
		}
	}
	handle, wanted := actions[d.action]
	if !wanted {
		why := strings.TrimSpace("There is nothing to do for " + d.event + " " + d.action)
		return "", ignored{why, slog.LevelDebug}
	}
	if err := d.validate(); err != nil {
		return "", err
	}
	return handle(i, ctx, d)
}

// decode decodes the payload into the field for its event.
func (d *delivery) decode() (err error) {
	switch d.event {
	case "pull_request":
		d.pull = new(github.PullRequestEvent)
		err = readPayload(d.payload, d.pull)
		d.action = d.pull.GetAction()
	case "issues", "issue_comment", "pull_request_review_comment", "pull_request_review":
		d.remark, d.action, err = readRemarkEvent(*d)
	default:
		d.check = new(checkEvent)
		err = readPayload(d.payload, d.check)
		d.action = d.check.Action
	}
	if err != nil {
		return unreadable{fmt.Errorf("read payload: %w", err)}
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
		return unreadable{errors.New("read payload: it contains no pull request")}
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
	Repo         string `json:"repo"` // owner/name
	Number       int    `json:"number"`
	Issue        int64  `json:"issue,omitempty"` // ID of the issue; 0 for a pull request
	Head         string `json:"head"`            // commit; "" for an issue
	Base         string `json:"base"`            // branch; "" for the default branch, for an issue
	BaseSHA      string `json:"base_sha"`
	Title        string `json:"title"`          // on one line, without hidden text
	Body         string `json:"body,omitempty"` // the description, without hidden text
	Installation int64  `json:"installation,omitempty"`
	URL          string `json:"html_url"`
	Action       string `json:"action"`
	// who approved this head of a fork; their permission is checked later
	ApprovedBy string   `json:"approved_by,omitempty"`
	Full       bool     `json:"full,omitempty"`  // also what the last review has covered
	Asked      *request `json:"asked,omitempty"` // nil if no one requested the task
	Also       []spot   `json:"also,omitempty"`  // more comments that requested the same, for an earlier head
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
		Repo: repo, Number: pr.GetNumber(), Head: head.GetSHA(), Base: base.GetRef(), BaseSHA: base.GetSHA(),
		URL: pr.GetHTMLURL(),
	}
	o.Title, o.Body = clipTexts(pr.GetTitle(), pr.GetBody())
	return o
}

// clipTexts returns a title and a description without hidden text and shortened to their limits.
func clipTexts(title, body string) (string, string) {
	return untrusted.Line(title, 200), untrusted.Cut(untrusted.Visible(body), maxDescription)
}

func (o origin) String() string { return fmt.Sprintf("%s#%d", o.Repo, o.Number) }

// kind returns "issue" or "pull request".
func (o origin) kind() string {
	if o.Issue != 0 {
		return "issue"
	}
	return "pull request"
}

// what returns the name of the issue or pull request for people and agents.
func (o origin) what() string { return o.kind() + " " + o.String() }

// path returns the owner and name of the repository.
func (o origin) path() (owner, name string) {
	owner, name, _ = strings.Cut(o.Repo, "/")
	return owner, name
}

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
	login, cancel := context.WithTimeout(ctx, i.api.patience.lookup)
	defer cancel()
	me, err := i.api.forge.Login(login)
	if err != nil {
		i.log.Warn("handle an event without errand's login", "err", err) // Brief checks again
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
	} else if e.GetSender().GetType() == "Bot" && (asked || d.action == actionLabeled) {
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
