package github

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/google/go-github/v60/github"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/untrusted"
	"github.com/errand-fleet/errand/tasks"
)

// handled lists the events we act on, and what each does: it submits tasks, or does at once what takes no agent, and says so. Whatever is
// not here is answered with 202 and forgotten. One event may stand here several times; all of them act.
var handled = []struct {
	event   string
	actions []string
	act     func(*Source, context.Context, *tasks.Desk, delivery) (said string, err error)
}{
	{"pull_request", []string{"opened", "synchronize", "reopened", "ready_for_review", requestedReview}, (*Source).review},
	{"pull_request", []string{"closed", "converted_to_draft"}, (*Source).retire},
	{"pull_request", []string{"labeled"}, (*Source).labeled},
	{"issue_comment", []string{"created"}, (*Source).hear},
	{"pull_request_review_comment", []string{"created"}, (*Source).hear},
	{"pull_request_review", []string{"submitted"}, (*Source).hear},
	{"issue_comment", []string{"deleted"}, (*Source).forget},
	{"pull_request_review_comment", []string{"deleted"}, (*Source).forget},
	{"pull_request_review", []string{"submitted"}, (*Source).respond},
	{"check_run", []string{"completed"}, (*Source).checked},
	{"check_suite", []string{"completed"}, (*Source).checked},
	{"workflow_run", []string{"completed"}, (*Source).checked},
	{"status", []string{""}, (*Source).checked}, // it has no actions
}

// delivery is one webhook whose signature was right.
type delivery struct {
	id, event, action string
	payload           []byte

	// The payload, decoded once by decode: the field that the event has.
	pull   *github.PullRequestEvent // use its getters: a head without repository is what a deleted fork looks like
	remark *heard
	check  *checkEvent

	after func(do func(context.Context)) // does what nobody waits for, once GitHub has its answer
}

// ignored says why an event becomes no task. It is the ordinary case and no failure.
type ignored struct {
	why   string
	level slog.Level // an operator asks about pull requests; GitHub sends far more
}

func (e ignored) Error() string { return e.why }

// unreadable is a payload that is not what its event should bring.
type unreadable struct{ error }

// act does what a delivery asks for, and says what that was. The error is ignored, unreadable, an *tasks.InputError, or that the event should
// come again.
func (s *Source) act(ctx context.Context, desk *tasks.Desk, d delivery) (said string, err error) {
	var all []string
	var last error
	for _, h := range handled {
		if h.event != d.event {
			continue
		}
		if d.pull == nil && d.remark == nil && d.check == nil {
			if err := d.decode(); err != nil {
				return "", err
			}
		}
		if !slices.Contains(h.actions, d.action) {
			continue
		}
		err := d.validate()
		said := ""
		if err == nil {
			said, err = h.act(s, ctx, desk, d)
		}
		if why, ok := errors.AsType[ignored](err); ok {
			last = why
			continue
		}
		if err != nil {
			return "", err
		}
		all = append(all, said)
	}
	if len(all) > 0 {
		return strings.Join(all, " "), nil
	}
	if last != nil {
		return "", last
	}
	return "", ignored{strings.TrimSpace("Nothing is to be done for " + d.event + " " + d.action), slog.LevelDebug}
}

// decode reads the payload into the field for its event.
func (d *delivery) decode() (err error) {
	switch d.event {
	case "pull_request":
		d.pull = new(github.PullRequestEvent)
		err = json.Unmarshal(d.payload, d.pull)
		d.action = d.pull.GetAction()
	case "issue_comment", "pull_request_review_comment", "pull_request_review":
		d.remark, d.action, err = readHeard(*d)
	default:
		d.check = new(checkEvent)
		err = json.Unmarshal(d.payload, d.check)
		d.action = d.check.Action
	}
	if err != nil {
		return unreadable{fmt.Errorf("read payload: %w", err)}
	}
	return nil
}

// validate refuses a payload without what its event should have.
func (d *delivery) validate() error {
	switch e := d.pull; {
	case d.remark != nil:
		return d.remark.validate()
	case e != nil && (e.GetRepo().GetFullName() == "" || e.GetPullRequest().GetNumber() == 0 || e.GetPullRequest().GetHead().GetSHA() == ""):
		return unreadable{errors.New("read payload: no pull request in it")}
	}
	return nil
}

// draft is a task before it is submitted, with its origin, which only submit marshals.
type draft struct {
	tasks.Task
	origin origin
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
func (s *Source) submit(ctx context.Context, desk *tasks.Desk, d draft) (tasks.Receipt, error) {
	t, err := d.task()
	if err != nil {
		return tasks.Receipt{}, err
	}
	return desk.Submit(ctx, t)
}

// submitted is the response to a webhook that became a task.
func submitted(r tasks.Receipt, err error) (string, error) {
	if err != nil {
		return "", err
	}
	return "Task " + r.ID, nil
}

// origin is where a task came from and where its report goes. It holds more than is read today: what was so at the time of the
// event cannot be learnt later.
type origin struct {
	Repo         string `json:"repo"` // owner/name
	Number       int    `json:"number"`
	Head         string `json:"head"` // commit
	Base         string `json:"base"` // branch
	BaseSHA      string `json:"base_sha"`
	Title        string `json:"title"`          // in one visible line
	Body         string `json:"body,omitempty"` // the description, as far as it is visible
	Installation int64  `json:"installation,omitempty"`
	URL          string `json:"html_url"`
	Action       string `json:"action"`
	ApprovedBy   string `json:"approved_by,omitempty"` // who let this head of a stranger's run, by what he did; that he may is asked later
	Full         bool   `json:"full,omitempty"`        // not only what is new since the last review
	Asked        *asked `json:"asked,omitempty"`       // nil: nobody has
	Also         []spot `json:"also,omitempty"`        // further comments that have asked for the same, of a head before this one
}

// originOf reads a task's return address.
func originOf(t tasks.Task) (origin, error) {
	var o origin
	if err := json.Unmarshal(t.Origin, &o); err != nil {
		return o, fmt.Errorf("read origin of task %s: %w", t.ID, err)
	}
	return o, nil
}

// asItIs is the origin of a task about a pull request as it is in this moment. What its author changes later is not what was asked for.
func asItIs(repo string, pr *github.PullRequest) origin {
	head, base := pr.GetHead(), pr.GetBase()
	o := origin{
		Repo: repo, Number: pr.GetNumber(), Head: head.GetSHA(), Base: base.GetRef(), BaseSHA: base.GetSHA(), URL: pr.GetHTMLURL(),
	}
	o.Title, o.Body = described(pr.GetTitle(), pr.GetBody())
	return o
}

// described is what of a title and a description is kept.
func described(title, body string) (string, string) {
	return untrusted.Line(title, 200), untrusted.Cut(untrusted.Visible(body), maxDescription)
}

func (o origin) String() string { return fmt.Sprintf("%s#%d", o.Repo, o.Number) }

// path is owner and name, as the client wants them.
func (o origin) path() (owner, name string) {
	owner, name, _ = strings.Cut(o.Repo, "/")
	return owner, name
}

// review submits the review of a pull request that somebody has opened, changed or wants reviewed.
func (s *Source) review(ctx context.Context, desk *tasks.Desk, d delivery) (said string, err error) {
	t, why := s.reviewOf(ctx, d)
	if _, ok := errors.AsType[ignored](why); t.ID == "" || why != nil && !ok {
		return "", why
	}
	pr := d.pull.GetPullRequest()
	return s.succeed(ctx, desk, t, pr, pr.GetUpdatedAt().Time, why)
}

// reviewOf makes the task of reviewing the pull request that an event is about. If nobody wants that it is an ignored, with the task.
func (s *Source) reviewOf(ctx context.Context, d delivery) (draft, error) {
	e := d.pull
	pr, repo := e.GetPullRequest(), e.GetRepo().GetFullName()
	if err := s.worksOn(repo); err != nil {
		return draft{}, err
	}
	o := asItIs(repo, pr)
	o.Installation, o.Action = e.GetInstallation().GetID(), d.action
	t := s.reviewTask(tasks.NewID(pr.GetUpdatedAt().Time, s.Name(), d.id), e.GetSender().GetLogin(), pr, o)
	if d.action == "synchronize" {
		t.NotBefore = s.cfg.Now().Add(s.cfg.Quiet)
	}
	login, cancel := context.WithTimeout(ctx, loginPatience)
	me, err := s.forge.Login(login)
	cancel()
	if err != nil {
		s.log.Warn("take an event without knowing who we are", "err", err) // Brief asks again
	}
	if why := unwanted(pr, t.Actor, me); why != "" {
		return t, ignored{why, slog.LevelInfo}
	}
	if d.action == requestedReview && (me == "" || e.GetRequestedReviewer().GetLogin() != me) {
		return t, ignored{"Somebody else was asked for a review.", slog.LevelDebug}
	}
	if e.GetSender().GetType() == "Bot" && slices.Contains([]string{requestedReview, "labeled"}, d.action) {
		return t, ignored{"A bot asks for it.", slog.LevelInfo} // whoever asks is not counted, so it would never end
	}
	return t, nil
}

// worksOn refuses what is about a repository that errand does not work on.
func (s *Source) worksOn(repo string) error {
	if s.cfg.Repository != nil && !s.cfg.Repository(repo) {
		return ignored{"Repository " + repo + " is not one errand works on.", slog.LevelInfo}
	}
	return nil
}

// reviewTask is the task of reviewing a pull request.
func (s *Source) reviewTask(id, actor string, pr *github.PullRequest, o origin) draft {
	return draft{tasks.Task{
		ID: id, Source: s.Name(), Kind: kindReview, Thread: reviews(o), Class: tasks.Review, Profile: profileOf(pr, agent.Read),
		Repo: o.Repo, Ref: o.Head, Actor: actor,
		Prompt: fmt.Sprintf("Review pull request #%d of %s: %s", o.Number, o.Repo, o.Title),
	}, o}
}

// unwanted says why a pull request is not reviewed, or nothing. It is asked when the event arrives and again before the run.
func unwanted(pr *github.PullRequest, actor, me string) string {
	switch {
	case pr.GetMerged():
		return "The pull request was merged."
	case pr.GetState() == "closed":
		return "The pull request was closed."
	case pr.GetDraft():
		return "The pull request is a draft."
	case pr.GetUser().GetType() == "Bot":
		return "The pull request is a bot's."
	case me != "" && (pr.GetUser().GetLogin() == me || actor == me):
		return "The pull request is our own doing."
	}
	return ""
}
