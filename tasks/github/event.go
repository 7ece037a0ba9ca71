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
	"github.com/errand-fleet/errand/tasks"
)

// handled lists the events we act on, and what each does: it submits tasks, or does at once what takes no agent, and says so. Whatever is
// not here is answered with 202 and forgotten. One event may stand here several times; all of them act.
var handled = []struct {
	event   string
	actions []string
	act     func(*Source, context.Context, *tasks.Desk, delivery) (said string, err error)
}{
	{"pull_request", []string{"opened", "synchronize", "reopened", "ready_for_review"}, (*Source).review},
	{"pull_request", []string{"labeled"}, (*Source).labeled},
}

// delivery is one webhook whose signature was right.
type delivery struct {
	id, event, action string
	payload           []byte
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
	var head struct {
		Action string `json:"action"`
	}
	var all []string
	for _, h := range handled {
		if h.event != d.event {
			continue
		}
		if err := json.Unmarshal(d.payload, &head); err != nil {
			return "", unreadable{fmt.Errorf("read payload: %w", err)}
		}
		if !slices.Contains(h.actions, head.Action) {
			continue
		}
		d.action = head.Action
		said, err := h.act(s, ctx, desk, d)
		if err != nil {
			return "", err
		}
		all = append(all, said)
	}
	if len(all) > 0 {
		return strings.Join(all, " "), nil
	}
	return "", ignored{strings.TrimSpace("Nothing is to be done for " + d.event + " " + head.Action), slog.LevelDebug}
}

// submit hands a task in, and says so.
func (s *Source) submit(ctx context.Context, desk *tasks.Desk, t tasks.Task) (said string, err error) {
	receipt, err := desk.Submit(ctx, t)
	if err != nil {
		return "", err
	}
	return "Task " + receipt.ID, nil
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
	Full         bool   `json:"full,omitempty"`        // not only what is new since the last review
	ApprovedBy   string `json:"approved_by,omitempty"` // who let this head of a stranger's run, by what he did; that he may is asked later
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
	return origin{
		Repo: repo, Number: pr.GetNumber(), Head: head.GetSHA(), Base: base.GetRef(), BaseSHA: base.GetSHA(),
		Title: line(pr.GetTitle(), 200), Body: cut(visible(pr.GetBody()), maxDescription), URL: pr.GetHTMLURL(),
	}
}

func (o origin) String() string { return fmt.Sprintf("%s#%d", o.Repo, o.Number) }

// path is owner and name, as the client wants them.
func (o origin) path() (owner, name string) {
	owner, name, _ = strings.Cut(o.Repo, "/")
	return owner, name
}

// short is a commit as people write it.
func short(sha string) string { return sha[:min(len(sha), 7)] }

// review submits the automatic review of a pull request.
func (s *Source) review(ctx context.Context, desk *tasks.Desk, d delivery) (said string, err error) {
	t, err := s.reviewOf(ctx, d)
	if err != nil {
		return "", err
	}
	var e github.PullRequestEvent
	if err := json.Unmarshal(d.payload, &e); err != nil {
		return "", unreadable{fmt.Errorf("read payload: %w", err)}
	}
	if t, err = s.expected(ctx, t, e.GetPullRequest()); err != nil {
		return "", err
	}
	return s.submit(ctx, desk, t)
}

// reviewOf makes the task of reviewing the pull request that an event is about.
func (s *Source) reviewOf(ctx context.Context, d delivery) (tasks.Task, error) {
	var e github.PullRequestEvent
	if err := json.Unmarshal(d.payload, &e); err != nil {
		return tasks.Task{}, unreadable{fmt.Errorf("read payload: %w", err)}
	}
	// Getters throughout: a head without repository is what a deleted fork looks like.
	pr, repo := e.GetPullRequest(), e.GetRepo().GetFullName()
	if repo == "" || pr.GetNumber() == 0 || pr.GetHead().GetSHA() == "" {
		return tasks.Task{}, unreadable{errors.New("read payload: no pull request in it")}
	}
	if s.cfg.Repository != nil && !s.cfg.Repository(repo) {
		return tasks.Task{}, ignored{"Repository " + repo + " is not one errand works on.", slog.LevelInfo}
	}
	login, cancel := context.WithTimeout(ctx, loginPatience)
	me, err := s.clients.me(login)
	cancel()
	if err != nil {
		s.log.Warn("take an event without knowing who we are", "err", err) // Brief asks again
	}
	actor := e.GetSender().GetLogin()
	if why := unwanted(pr, actor, me); why != "" {
		return tasks.Task{}, ignored{why, slog.LevelInfo}
	}
	o := asItIs(repo, pr)
	o.Installation, o.Action = e.GetInstallation().GetID(), d.action
	address, err := json.Marshal(o)
	if err != nil {
		return tasks.Task{}, fmt.Errorf("marshal origin: %w", err)
	}
	return tasks.Task{
		ID: tasks.NewID(pr.GetUpdatedAt().Time, s.Name(), d.id), Source: s.Name(), Kind: "review",
		Thread: "github/" + o.String() + "/review", Class: tasks.Review, Profile: profileOf(pr, agent.Read),
		Repo: repo, Ref: o.Head, Actor: actor, Origin: address,
		Prompt: fmt.Sprintf("Review pull request #%d of %s: %s", o.Number, repo, o.Title),
	}, nil
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
