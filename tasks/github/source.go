package github

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"

	"github.com/errand-fleet/errand/forge"
	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/intake"
)

// Config is what a Source needs; the first block is required.
type Config struct {
	Forge         *hub.Forge
	WebhookSecret string        // without one, forged events would be accepted
	Memory        intake.Memory // of what was done with each pull request

	People       tasks.People                // who is who; names for posts
	Repository   func(name string) (ok bool) // reports whether events of a repository count; nil: all do
	Repositories []string                    // that are polled for missed events; empty: none
	Look         time.Duration               // between two polls; 0: DefaultLook

	ForkLabel  string           // approves the head of a pull request from a fork for review; empty: DefaultForkLabel
	Bots       []string         // logins of other bots that may ask for something; see bots.go
	ForkRuns   int              // on forks of one author in a day; 0: DefaultForkRuns
	Limiter    intake.Limiter   // of requests on a pull request; nil: unlimited
	Board      Board            // shows the results of repositories that are only watched; nil: there are none
	Quiet      time.Duration    // how long after a push a review waits for the next push; 0: DefaultQuiet
	ConsoleURL string           // where /tasks/{id} shows a run; empty: reports have no link to it
	Log        *slog.Logger     // nil: discard
	Now        func() time.Time // nil: time.Now
}

// What Config leaves open.
const (
	DefaultForkLabel = "errand"
	DefaultForkRuns  = 5
	DefaultLook      = 5 * time.Minute
	DefaultQuiet     = 30 * time.Second // lets people push a correction first
)

// Source is GitHub as tasks sees it. Its fields do not change after New; caches have locks of their own.
type Source struct {
	cfg     Config
	forge   *hub.Forge
	memory  memory
	inbound intake.Inbound
	pacer   intake.Pacer
	wishes  hub.Recent[wish]
	log     *slog.Logger
}

var (
	_ tasks.Source    = (*Source)(nil)
	_ tasks.Talker    = (*Source)(nil)
	_ tasks.Selective = (*Source)(nil)
	_ tasks.Settler   = (*Source)(nil)
)

// New checks the configuration. It does not talk to GitHub.
func New(cfg Config) (*Source, error) {
	var problems []error
	refuse := func(cond bool, text string) {
		if cond {
			problems = append(problems, errors.New(text))
		}
	}
	refuse(cfg.Forge == nil, "no forge")
	refuse(cfg.Memory == nil, "no memory")
	refuse(cfg.ForkRuns < 0, "a negative number of runs on forks")
	refuse(cfg.WebhookSecret == "", "no webhook secret")
	if err := errors.Join(problems...); err != nil {
		return nil, fmt.Errorf("configure GitHub: %w", err)
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	cfg.Quiet, cfg.Look = cmp.Or(cfg.Quiet, DefaultQuiet), cmp.Or(cfg.Look, DefaultLook)
	cfg.ForkLabel, cfg.ForkRuns = cmp.Or(cfg.ForkLabel, DefaultForkLabel), cmp.Or(cfg.ForkRuns, DefaultForkRuns)
	cfg.ConsoleURL = strings.TrimRight(cfg.ConsoleURL, "/")
	return &Source{cfg: cfg, forge: cfg.Forge, memory: memory{cfg.Memory, cfg.Log}, pacer: intake.Pacer{Limiter: cfg.Limiter}, log: cfg.Log.With("source", "github")}, nil
}

// Name returns "github".
func (s *Source) Name() string { return "github" }

// client returns the client for a task's repository.
func (s *Source) client(ctx context.Context, o origin) (*github.Client, error) {
	return s.forge.Client(ctx, o.Repo, o.Installation)
}

// later wraps an error of a report. A rate limit becomes an *tasks.ErrLater.
func (s *Source) later(what string, err error) error {
	return tasks.FromForge(s.forge.RateLimit(what, err))
}

// sorted is like later, for a brief: a permanent failure becomes an *tasks.InputError.
func (s *Source) sorted(what string, err error) error {
	return tasks.FromForge(s.forge.Explain(what, err))
}

// page returns where people see a task: the console, or the place of its answer. It is unique among a commit's tasks.
func (s *Source) page(o origin, id string) string {
	if s.cfg.ConsoleURL != "" {
		return s.cfg.ConsoleURL + "/tasks/" + id
	}
	return o.URL + "#" + id
}

// present returns the pull request of a task as it is now, and the client for it.
func (s *Source) present(ctx context.Context, o origin) (*github.Client, *github.PullRequest, error) {
	gh, err := s.client(ctx, o)
	if err != nil {
		return nil, nil, s.sorted("reach "+o.String(), err)
	}
	owner, name := o.path()
	pr, _, err := gh.PullRequests.Get(ctx, owner, name, o.Number)
	if err != nil {
		return nil, nil, s.sorted("read "+o.String(), err)
	}
	return gh, pr, nil
}

// may returns what an account may do in a task's repository. An account that GitHub does not know may do nothing,
// except for a bot that the operator has listed. After an error it may do nothing either.
func (s *Source) may(ctx context.Context, o origin, login string) (forge.Permission, error) {
	p, err := s.forge.PermissionFor(ctx, o.Repo, o.Installation, login)
	if errors.Is(err, forge.ErrNotFound) {
		if s.mayAsk(login) {
			return forge.PermissionWrite, nil
		}
		return forge.PermissionNone, nil
	}
	return p, tasks.FromForge(err)
}

// mustWrite refuses an account that may not push.
func (s *Source) mustWrite(ctx context.Context, o origin, login string) error {
	p, err := s.may(ctx, o, login)
	if err == nil && !p.CanWrite() {
		err = &tasks.InputError{Sentence: login + " has no write access to " + o.Repo + "."}
	}
	return err
}

// The kinds of tasks.
const (
	kindReview         = "review"
	kindComment        = "comment"
	kindAnalyze        = "analyze"
	kindFix            = "fix"
	kindCheckFailure   = "check_failure"
	kindMergeConflict  = "merge_conflict"
	kindReviewResponse = "review_response"
)

// kind describes how tasks of a kind are briefed and reported.
type kind struct {
	brief     func(s *Source, ctx context.Context, t tasks.Task, o origin, dir string) (tasks.Brief, error)
	open      func(s *Source, ctx context.Context, t tasks.Task, o origin) (tasks.Report, error)
	automatic bool // done without a request, unless the repository's settings switch it off
	asks      bool // the agent may ask the requester
}

// kinds returns all kinds. Each may have a model in a repository's settings. (A variable would be an initialization
// cycle.)
func kinds() map[string]kind {
	return map[string]kind{
		kindReview:         {brief: (*Source).briefReview, open: (*Source).openReview, automatic: true},
		kindComment:        {brief: (*Source).briefComment, open: (*Source).openReply, asks: true},
		kindAnalyze:        {brief: (*Source).briefAnalysis, open: (*Source).openReply},
		kindFix:            {brief: (*Source).briefFix, open: (*Source).openReply, asks: true},
		kindCheckFailure:   {brief: (*Source).briefChecks, open: (*Source).openReply, automatic: true, asks: true},
		kindMergeConflict:  {brief: (*Source).briefConflict, open: (*Source).openReply, automatic: true, asks: true},
		kindReviewResponse: {brief: (*Source).briefResponse, open: (*Source).openReply, automatic: true, asks: true},
	}
}

// Brief reads the task's subject from GitHub in its present state.
func (s *Source) Brief(ctx context.Context, t tasks.Task, dir string) (tasks.Brief, error) {
	o, err := originOf(t)
	if err != nil {
		return tasks.Brief{}, err
	}
	k, ok := kinds()[t.Kind]
	if !ok {
		return tasks.Brief{}, unknownKind(t)
	}
	if o.Asked != nil || o.Action == requestedReview {
		if err := s.mustWrite(ctx, o, t.Actor); err != nil {
			return tasks.Brief{}, err
		}
	}
	switch {
	case o.byBot():
		err = s.round(ctx, t, o)
	case !nobodyAsked(t, o):
		err = s.memory.spoke(ctx, o) // only now, after the permission check: otherwise anyone could keep errand working
	}
	if err != nil {
		return tasks.Brief{}, err
	}
	b, err := k.brief(s, ctx, t, o, dir)
	if err == nil && s.watched(o.Repo) {
		b.System += "\n" + unwritten
	}
	return b, err
}

// Open finds what a task has posted, or starts its report.
func (s *Source) Open(ctx context.Context, t tasks.Task) (tasks.Report, error) {
	o, err := originOf(t)
	if err != nil {
		return nil, err
	}
	k, ok := kinds()[t.Kind]
	if !ok {
		return nil, unknownKind(t)
	}
	if s.watched(o.Repo) {
		return s.openNotice(ctx, t, o)
	}
	r, err := k.open(s, ctx, t, o)
	return s.acked(ctx, o, r, err)
}

// unknownKind is the error for a task of a newer front door.
func unknownKind(t tasks.Task) error {
	return fmt.Errorf("brief task %s: this worker does not know the kind %q, a newer one might", t.ID, t.Kind)
}
