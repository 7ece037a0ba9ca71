// Package github is the task source for GitHub. It turns requests in pull requests and issues into tasks. It also turns
// an opened or updated pull request into a review, which is reported by a check run (a commit status if errand has only
// a token), one review with a comment on the line of each finding, and one summary comment.
//
// It promises:
//   - An event counts only with a correct X-Hub-Signature-256. It is stored before it is interpreted: GitHub's API is
//     not asked before the answer, and no event is lost while that API fails.
//   - Code from a fork is not run, and drafts and bots' pull requests are not reviewed. Both are checked again before
//     the run.
//   - Text by others reaches the agent as quoted material, without the parts that a page does not show. The agent's
//     text reaches the page whole and notifies no one.
//   - A comment counts if it mentions errand, outside of code and quotes, or begins with a command. All its deliveries
//     give the same task. Comments by errand and by bots that are not listed are ignored. The author's write access is
//     checked before anything runs.
//   - Comments on issues, new issues, and issues that people with write access label or assign to errand are requests
//     in the same way. Work on an issue is proposed with the keyword that closes it. What was requested on an issue
//     before it was closed, deleted, transferred or locked ends. One comment on the issue shows the state of the work,
//     and never shows work as running that has ended.
//   - Nothing is written to a repository that is only watched. Results are posted on a Board.
//   - The agent's updates and questions are separate comments, each posted once. Any person with write access may
//     answer; the first answer counts. Listed bots can request work, which counts as automatic work.
//   - Each request in a comment gets one answer where it was made (in the conversation, for several requests in one
//     run), found again by its marker. The comment gets a reaction that shows the result. The agent does not see text
//     that was written or edited after the request.
//   - A review has at most six comments by default, all inside the diff of the reviewed head, and none if the head has
//     moved. Findings without a line are in the summary. A review is found again by its marker and never submitted
//     twice.
//   - No finding is posted twice, nor again after people have dismissed or answered it. errand resolves its own threads
//     when the finding is fixed.
//   - There is one summary per pull request, continued in further comments if it does not fit. It is edited, not
//     repeated. An older task never replaces the text of a newer one, and a failure never replaces a review.
//   - No finding marks the commit as failed. If a review could not be made, a check run is neutral and a status is an
//     error, with the reason: nothing unreviewed looks reviewed. (A check run that ends as timed_out or cancelled
//     blocks a merge that requires it, and so does a status that is an error.)
//   - A review is of a head and a base branch. Both are read when its run starts, and another one is reviewed again.
//   - Published work has one open pull request per branch, a draft if the repository supports drafts. errand edits only
//     its own part of the description; it never merges, approves, closes or marks a pull request ready.
//   - No request to GitHub lasts longer than 10 s, and creation is not repeated without looking for the result first.
//
// It does not promise to receive every event: GitHub does not repeat a failed delivery. Use a dedicated account or App,
// because its pull requests and pushes are not reviewed.
//
// A Source may be used from any goroutine of any process. A report's Update is called from one goroutine at a time and
// never blocks; Close may run concurrently. A report has one goroutine, which ends with Close or with the context given
// to Open.
//
// Package forge/github lists the permissions and events that the App needs, and checks that it has them.
package github

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/internal/doctor"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/github/autofix"
	"github.com/errand-fleet/errand/tasks/github/review"
	"github.com/errand-fleet/errand/tasks/github/settings"
	"github.com/errand-fleet/errand/tasks/github/subject"
	"github.com/errand-fleet/errand/tasks/github/thread"
	"github.com/errand-fleet/errand/tasks/intake"
	"github.com/errand-fleet/errand/tasks/people"
)

// Config is what a Source needs; the first block is required, WebhookSecret or Poll only for Listen.
type Config struct {
	Forge         *hub.Forge
	WebhookSecret string        // without one, forged events would be accepted
	Memory        intake.Memory // of what was done with each pull request
	Inbox         intake.Inbox  // of webhooks; required for Listen

	People         people.People               // names for posts
	Repository     func(name string) (ok bool) // reports whether events of a repository count; nil if all do
	Base           func(name string) string    // of settings and issues; nil or "" for the default branch
	Repositories   []string                    // repositories to poll for missed events
	PollEvery      time.Duration               // between two polls; DefaultPollEvery if 0
	QuickPollEvery time.Duration               // between two quick polls for comments, reviews and pushes; 0 for none

	ForkLabel  string           // approves the head of a pull request from a fork for review; DefaultForkLabel if ""
	Bots       []string         // logins of other bots that may make requests; see subject.Gate
	Limiter    intake.Limiter   // limits requests on a pull request; nil for no limit
	Board      Board            // shows the results of repositories that are only watched; nil if there are none
	Quiet      time.Duration    // time from a push to its review, unless another push follows; DefaultQuiet if 0
	ConsoleURL string           // base URL of /tasks/{id}; reports have no link to the run if ""
	Log        *slog.Logger     // nil discards
	Now        func() time.Time // time.Now if nil
}

// Defaults of Config.
const (
	DefaultForkLabel = "errand"
	DefaultPollEvery = 5 * time.Minute
	DefaultQuiet     = 30 * time.Second // lets people push a correction first
)

// Source implements tasks.Source for GitHub. Its parts do not change after New; caches have their own locks.
type Source struct {
	shared
	cfg     Config
	forge   *hub.Forge
	inbound intake.Inbound
	briefs  *briefer  // makes the briefs of tasks
	reports *reporter // shows tasks on GitHub
}

// shared is what all parts of a source work with.
type shared struct {
	api      thread.Client
	gate     *subject.Gate // decides who may do what
	settings *settings.Reader
	fixes    *autofix.Fixes
	reviews  *review.Reviews
	memory   subject.Memory
	watched  func(repo string) bool // reports whether a repository is only watched
	now      func() time.Time
	log      *slog.Logger
}

var _ tasks.Source = (*Source)(nil)

// Capabilities are all but reading the thread, files and local directories. A confirmation is left out: the request has
// its reaction, and each comment is mailed to many people.
func (s *Source) Capabilities() tasks.Capabilities {
	return tasks.Capabilities{
		Links: s.Links, Waits: s.reports.waits, ShowsWait: s.reports.showsWait, Final: s.Final,
		Talks: s.briefs.mayAskQuestions, Quiet: true, Say: s.Say, Ask: s.Ask, Settle: s.Settle,
		Reviews: s.reviews, Inbound: s.Inbound, Diagnose: s.Diagnose,
	}
}

// Inbound returns when the last webhook from GitHub arrived, or zero. There is no connection that could be lost.
func (s *Source) Inbound() (last time.Time, err error) { return s.inbound.Last(), nil }

// Diagnose reports how GitHub is configured, and whether webhooks arrive.
func (s *Source) Diagnose(ctx context.Context) []doctor.Finding {
	list := s.forge.Diagnose(ctx)
	if s.inbound.LastRefused() {
		list = append(list, doctor.Finding{
			What: "GitHub: the last webhook had a wrong signature", Why: "If GitHub sent it, no event is accepted.",
			Remedy: "Compare GITHUB_WEBHOOK_SECRET with the secret of the webhook.",
		})
	}
	return list
}

// Links returns the pull request or issue, and the comment that requested the task.
func (s *Source) Links(t tasks.Task) tasks.Links {
	o, err := subject.Of(t)
	if err != nil {
		return tasks.Links{}
	}
	l := tasks.Links{Thread: o.URL}
	if strings.Contains(o.URL, "/pull/") {
		l.PullRequest = o.URL
	}
	if o.Asked != nil && o.Asked.URL != "" {
		l.Thread = o.Asked.URL
	}
	return l
}

// New checks the configuration. It sends nothing to GitHub.
func New(cfg Config) (*Source, error) {
	var problems []error
	refuse := func(cond bool, text string) {
		if cond {
			problems = append(problems, errors.New(text))
		}
	}
	refuse(cfg.Forge == nil, "no forge")
	refuse(cfg.Memory == nil, "no memory")
	if err := errors.Join(problems...); err != nil {
		return nil, fmt.Errorf("configure GitHub: %w", err)
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Base == nil {
		cfg.Base = func(string) string { return "" }
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	cfg.Quiet, cfg.PollEvery = cmp.Or(cfg.Quiet, DefaultQuiet), cmp.Or(cfg.PollEvery, DefaultPollEvery)
	cfg.ForkLabel = cmp.Or(cfg.ForkLabel, DefaultForkLabel)
	cfg.ConsoleURL = strings.TrimRight(cfg.ConsoleURL, "/")
	return assemble(cfg), nil
}

// assemble creates the parts of a source.
func assemble(cfg Config) *Source {
	log, mem := cfg.Log.With("source", sourceName), subject.Memory{Store: cfg.Memory, Log: cfg.Log}
	hubAPI := thread.Client{Forge: cfg.Forge, Now: cfg.Now, Log: log, ConsoleURL: cfg.ConsoleURL}
	g := &subject.Gate{
		Forge: cfg.Forge, Memory: mem,
		Bots: cfg.Bots, ForkLabel: cfg.ForkLabel, Now: cfg.Now,
	}
	parts := shared{
		api: hubAPI, gate: g, memory: mem, watched: cfg.watched, now: cfg.Now, log: log,
		settings: settings.NewReader(hubAPI, g, cfg.Base),
	}
	parts.fixes = &autofix.Fixes{
		API: hubAPI, Gate: g, Memory: mem, Settings: parts.settings, Watched: cfg.watched,
	}
	reports := &reporter{shared: parts, board: cfg.Board, people: cfg.People, pause: statusPause}
	parts.reviews = review.New(review.Config{
		API: hubAPI, Gate: g, Settings: parts.settings, Memory: mem, Quiet: cfg.Quiet, Explain: reports.explain,
	})
	reports.reviews = parts.reviews
	return &Source{
		shared: parts, cfg: cfg, forge: cfg.Forge, briefs: &briefer{parts},
		reports: reports,
	}
}

// interpreter returns an interpreter that submits to a desk.
func (s *Source) interpreter(d *desk.Desk) *interpreter {
	return &interpreter{
		shared: s.shared, desk: d, reviews: s.reviews.To(d), repository: s.cfg.Repository, base: s.cfg.Base,
		pacer: intake.Pacer{Limiter: s.cfg.Limiter},
	}
}

// newPoller returns a poller that submits what it finds to a desk.
func (s *Source) newPoller(d *desk.Desk) *poller {
	return &poller{
		interpreter: s.interpreter(d), inbox: s.cfg.Inbox, repositories: s.cfg.Repositories, every: s.cfg.PollEvery,
		quickEvery: s.cfg.QuickPollEvery,
	}
}

// sourceName is the source's name.
const sourceName = subject.Source

// Name returns "github".
func (s *Source) Name() string { return sourceName }

// Brief reads the task's subject from GitHub in its present state.
func (s *Source) Brief(ctx context.Context, t tasks.Task, _ string) (tasks.Brief, error) {
	o, err := subject.Of(t)
	if err != nil {
		return tasks.Brief{}, err
	}
	if _, ok := subject.Kinds[t.Kind]; !ok {
		return tasks.Brief{}, unknownKind(t)
	}
	if o.Asked != nil || o.Action == subject.ActionReviewRequested {
		asker := t.Actor
		if t.Retrier.Source == sourceName {
			asker = t.Retrier.Account
		}
		if err := s.gate.MustWrite(ctx, o.Ref, asker); err != nil {
			return tasks.Brief{}, err
		}
	}
	if err := s.count(ctx, t, o); err != nil {
		return tasks.Brief{}, err
	}
	b, err := s.briefs.brief(ctx, t, o)
	if err != nil {
		return tasks.Brief{}, err
	}
	if s.watched(o.Repo) {
		b.System += "\n" + watchedSystem
	}
	return b, nil
}

// count counts the request of a bot as automatic work. A request of a person resets the count, but only after the
// permission check: otherwise anyone could keep errand working.
func (s *Source) count(ctx context.Context, t tasks.Task, o subject.Origin) error {
	if o.ByBot() {
		return s.gate.CountBotRequest(ctx, t, o)
	}
	if subject.IsAutomatic(t, o) {
		return nil
	}
	return s.memory.ResetRounds(ctx, o.Ref)
}

// Open finds what a task has posted, or starts its report.
func (s *Source) Open(ctx context.Context, t tasks.Task) (tasks.Report, error) {
	o, err := subject.Of(t)
	if err != nil {
		return nil, err
	}
	if _, ok := subject.Kinds[t.Kind]; !ok {
		return nil, unknownKind(t)
	}
	r, err := s.reports.open(ctx, t, o)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Final finds a task's final message by its mark: the review's comment, or the reply. It does not find results of
// repositories that are only watched.
func (s *Source) Final(ctx context.Context, t tasks.Task, after time.Time) (*tasks.Ending, error) {
	o, err := subject.Of(t)
	if err != nil || s.watched(o.Repo) {
		return nil, err
	}
	r, err := s.reports.report(ctx, t, o)
	if err != nil {
		return nil, err
	}
	e, err := r.Final(ctx, after)
	if err != nil {
		return nil, r.ReportError("find an earlier final message on "+o.String(), err)
	}
	return e, nil
}

// unknownKind is the error for a task of a newer front door.
func unknownKind(t tasks.Task) error {
	return fmt.Errorf("brief task %s: this worker does not know the kind %q, a newer one might", t.ID, t.Kind)
}

// VerificationCommands returns the commands that should succeed before work is published, from a repository's settings
// on a branch: all of them, or an error.
func (s *Source) VerificationCommands(ctx context.Context, repo string) ([]string, error) {
	return s.settings.VerificationCommands(ctx, repo)
}
