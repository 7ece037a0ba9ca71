// Package slack is the source of requests in Slack. A mention of the bot becomes a task; its thread shows a status
// message while the task runs, and then the answer.
//
// It promises:
//   - An event counts only with a valid signature that is at most 5 minutes old, or on a connection that errand opened
//     (Socket Mode). It is answered within 3 s whatever Redis does, without asking Slack, and only with 200 or an
//     acknowledgement once it is stored, so that Slack sends it again otherwise. It is interpreted after that.
//   - A connection in Socket Mode is replaced when it ends, when it is silent for 30 s, or when it brings no event for
//     5 minutes, in the last case before it is closed. Slack repeats an event for some 6 minutes.
//   - A mention is one task, however often and in whatever form its event arrives: the task's ID is the message's.
//   - Nothing starts for a user who may not ask, or whom Slack does not identify. Bots that are not listed, and the bot
//     itself, get no answer.
//   - In a direct message, and in a thread that had a task, the bot need not be mentioned: a reply is for it unless it
//     mentions others.
//   - A request by slash command or shortcut is a task like a mention: the bot posts it, in the thread of the
//     shortcut's message, and starts it before Slack has its answer, unless that takes long.
//   - A command such as stop, or ❌ on a request, counts if it comes from the person who asked or from an approver. A
//     late repetition of its event changes nothing.
//   - A task that names a pull request works at its head. Code of strangers is read and not run, whatever the thread
//     says later.
//   - Files of messages are downloaded only from Slack's own hosts. A failed download does not keep a run from
//     starting.
//   - A request is what its author last made of it, until its run starts; after that an edit is one more message to the
//     thread.
//   - A thread is one conversation. What others said in it reaches the agent as quoted material.
//   - While the agent waits for an answer, the next message in the thread from the person who asked for the task is
//     that answer, and not a task; it gets a ✅.
//   - The final message is posted once and complete, in as many parts as it takes: each carries a marker in its
//     metadata, by which the next attempt, in any process, finds it. A task that is retried has another ending and
//     another final message.
//   - A notice of a pull request is posted once, in the thread of the first one. A request there is about that pull
//     request.
//   - Questions and final messages notify only the person who asked, and Slack follows no link of the agent's.
//   - Buttons work for the person who asked and for approvers; others get a refusal that only they see. Slack does not
//     send a press again: one that fails is shown as failed to the person who pressed.
//
// Messages and files that the agent posts while it works are posted at most once; a lost answer of Slack is not tried
// again. Questions are found by their markers, if the app may read the thread. Short rate limits are waited for.
//
// It does not promise that the status message is up to date, or exists, nor what Slack shows below a thread: their
// failures fail nothing. Only a thread that was deleted is given up. If the bot may not post to the thread for another
// reason, such as because it was removed from the channel, the final message is tried for a day, and after a minute
// also sent to the person who asked.
//
// A Source may be used from any goroutine of any process; Listen is called once. Update of a report is called from one
// goroutine at a time and never blocks; Close may run beside it. A report has at most one goroutine, which ends with
// Close or with the context given to Open. Everything that Listen starts ends with its context: calls in the background
// and, for Socket Mode, the keeper of the connection and its readers. Only slash commands and dialogs with a request
// are finished.
//
// Manifest lists the scopes and events that the app needs, and Diagnose checks that it has them.
package slack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/slack-go/slack"
	"golang.org/x/time/rate"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/intake"
	"github.com/errand-fleet/errand/tasks/people"
	"github.com/errand-fleet/errand/tasks/slack/render"
)

// Config says which workspace to talk to, and as whom. Token is required, and for Listen SigningSecret or AppToken or
// both.
type Config struct {
	People        people.People // names of users for display
	Token         string        // of the bot, xoxb-…
	APIURL        string        // base of the Web API, with a slash at its end; empty: Slack's
	SigningSecret string        // of the app; empty: no events are accepted by HTTP
	AppToken      string        // of the app, xapp-…; empty: no Socket Mode

	// the repository a channel is about; nil: none has one
	Channels     func(channel string) (repository string, ok bool)
	Repositories []string // "owner/name" of all that errand works on; empty: people may name any
	GitHubURL    string   // base of repository URLs; empty: https://github.com
	Access       Access   // who may ask
	Pulls        Pulls    // the forge; nil: none
	// channels for the results of repositories that are only watched, by "owner/name"
	Results    map[string]string
	Channelled map[string]string // other channels that results go to, by whose they are, for Diagnose
	// of requests without a repository, and of Results, which require it; nil: none
	Memory     intake.Memory
	Inbox      intake.Inbox                 // of events; required for Listen
	Approvers  []string                     // users who may stop, retry and approve tasks of others
	ConsoleURL string                       // where /tasks/{id} shows a run; empty: messages have no link to it
	LinkURL    string                       // where people link their account to one on the forge; empty: they cannot
	TaskURL    func(base, id string) string // makes that link; nil: without a signature
	Interval   time.Duration                // between two edits of a status message; 0: 3 s
	Limiter    intake.Limiter               // of edits and of requests in a thread; nil: none
	Redact     func(string) string          // removes secrets from what people ask by commands; nil: nothing is removed
	// nil: one on Transport. Each call is bounded by 10 s as well, an upload by a minute
	HTTP *http.Client
	Log  *slog.Logger     // nil: discard
	Now  func() time.Time // nil: time.Now
}

// sourceName is the prefix of the threads and the word in the IDs of the tasks that come from Slack.
const sourceName = "slack"

// Source is Slack as tasks sees it. Make it with New.
type Source struct {
	*reporter
	*briefer
	*digest

	client   *client
	listener *listener
	socket   *socketMode // nil: not configured
}

var _ tasks.Source = (*Source)(nil)

// New checks the configuration. It does not talk to Slack.
func New(cfg Config) (*Source, error) {
	base, err := cfg.check()
	if err != nil {
		return nil, fmt.Errorf("configure Slack: %w", err)
	}
	log := cfg.Log.With("source", sourceName)
	api := slack.New(cfg.Token, slack.OptionAPIURL(cfg.APIURL), slack.OptionHTTPClient(cfg.HTTP),
		slack.OptionAppLevelToken(cfg.AppToken))
	c := &client{
		api: api, me: newIdentity(api, cfg.Now), people: newUsers(api, cfg.Now), limiter: cfg.Limiter,
		reactions: rate.NewLimiter(rate.Every(reactEvery), reactBurst), redact: cfg.Redact, now: cfg.Now, log: log,
	}
	ts, console := &threads{c}, cfg.console()
	reports := &reporter{threads: ts, console: console, interval: cfg.Interval, memory: cfg.Memory}
	notices := &digest{threads: ts, console: console, results: cfg.Results, others: cfg.Channelled, memory: cfg.Memory}
	g := &guard{
		access: cfg.Access, approvers: cfg.Approvers, people: c.people, pacer: intake.Pacer{Limiter: cfg.Limiter},
	}
	d := &drafts{pulls: cfg.Pulls, guard: g}
	p := &picker{client: c, guard: g, memory: cfg.Memory, reports: reports}
	repos := &repositories{
		names: cfg.Repositories, channels: cfg.Channels, pulls: cfg.Pulls, log: log,
		reader: newReader(cmp.Or(cfg.GitHubURL, "https://github.com")),
	}
	in := &interpreter{
		client: c, guard: g, repos: repos, picker: p, digest: notices, reports: reports, names: cfg.People, drafts: d,
		linkURL: cfg.LinkURL,
	}
	l := &listener{
		secret: cfg.SigningSecret, limit: submitLimit, now: cfg.Now, log: log,
		inbound: &intake.Inbound{}, inbox: cfg.Inbox, pressing: make(chan struct{}, maxPressing),
		interpreter: in, buttons: &buttons{
			client: c, guard: g, picker: p, interpreter: in, drafts: d,
		},
	}
	s := &Source{
		reporter: reports, digest: notices, client: c, listener: l,
		briefer: &briefer{client: c, files: &downloader{
			slack: api, http: cfg.HTTP, token: cfg.Token, api: base, limit: downloadLimit, log: log,
		}},
	}
	if cfg.AppToken != "" {
		l.inbound.ConnectionFailed(errors.New("not connected to Slack yet"))
		s.socket = &socketMode{listener: l, api: api, timing: defaultTiming}
	}
	return s, nil
}

// check reports everything that is wrong with a configuration and sets what it leaves open.
func (c *Config) check() (base *url.URL, err error) {
	var problems []error
	refuse := func(wrong bool, text string) {
		if wrong {
			problems = append(problems, errors.New(text))
		}
	}
	c.APIURL = cmp.Or(c.APIURL, slack.APIURL)
	base, err = url.Parse(c.APIURL)
	refuse(err != nil || base.Host == "" || !strings.HasSuffix(base.Path, "/"),
		"the API's URL is not a URL that ends in a slash")
	refuse(c.Token == "", "no bot token")
	refuse(len(c.Results) > 0 && c.Memory == nil, "no memory of results")
	if c.Interval <= 0 {
		c.Interval = 3 * time.Second
	}
	if c.HTTP == nil {
		c.HTTP = &http.Client{Transport: Transport()}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Redact == nil {
		c.Redact = func(text string) string { return text }
	}
	return base, errors.Join(problems...)
}

// Transport keeps as many connections as there are calls at once: by default all but two are closed after each call.
func Transport() *http.Transport {
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: maxPressing,
		IdleConnTimeout: 90 * time.Second,
	}
}

// Name returns "slack".
func (s *Source) Name() string { return sourceName }

// Capabilities are all but local directories and reviews. Each request has a status message, which shows its waits.
func (s *Source) Capabilities() tasks.Capabilities {
	return tasks.Capabilities{
		Links: func(t tasks.Task) tasks.Links { return tasks.Links{Thread: s.client.threadLink(t)} },
		Waits: s.Waits, Final: s.Final,
		Say: s.Say, Ask: s.Ask, Settle: s.Settle, ReadThread: s.ReadThread, Attach: s.Attach,
		Inbound: s.Inbound, Diagnose: s.Diagnose,
	}
}

// Listen registers POST /slack/events, /slack/interactions and /slack/commands and connects in Socket Mode, each if it
// is configured. It fails if neither is. Everything that it starts ends with ctx.
func (s *Source) Listen(ctx context.Context, mux *http.ServeMux, d *desk.Desk) error {
	l := s.listener
	if l.secret == "" && s.socket == nil {
		return errors.New("configure Slack: neither a signing secret nor an app token")
	}
	l.interpreter.desk, l.buttons.desk, l.buttons.picker.desk = d, d, d
	l.inbox.Handle(sourceName, func(ctx context.Context, e intake.Event) (outcome string, err error) {
		return "", l.interpreter.interpret(ctx, e)
	})
	if l.secret != "" {
		l.register(ctx, mux)
	}
	if s.socket != nil {
		go s.socket.run(ctx)
	}
	return nil
}

// Inbound returns when the last event came from Slack, by HTTP or by Socket Mode (zero: none has), and why none can
// come: an error if Socket Mode is configured and there is no connection.
func (s *Source) Inbound() (last time.Time, err error) {
	return s.listener.inbound.Last(), s.listener.inbound.ConnectionErr()
}

// console returns what makes the links to tasks.
func (c Config) console() render.Console {
	base := strings.TrimRight(c.ConsoleURL, "/")
	switch {
	case base == "":
		return nil
	case c.TaskURL == nil:
		return func(id string) string { return base + "/tasks/" + id }
	}
	return func(id string) string { return c.TaskURL(base, id) }
}
