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
	"github.com/errand-fleet/errand/tasks/intake"
	"github.com/errand-fleet/errand/tasks/slack/render"
)

// Config says which workspace to talk to, and as whom. Token is required, and SigningSecret or AppToken or both.
type Config struct {
	People        tasks.People // names of users for display
	Token         string       // of the bot, xoxb-…
	APIURL        string       // base of the Web API, with a slash at its end; empty: Slack's
	SigningSecret string       // of the app; empty: no events are accepted by HTTP
	AppToken      string       // of the app, xapp-…; empty: no Socket Mode

	Channels     func(channel string) (repository string, ok bool) // the repository a channel is about; nil: none has one
	Repositories []string                                          // "owner/name" of all that errand works on; empty: people may name any
	GitHubURL    string                                            // base of repository URLs; empty: https://github.com
	Access       Access                                            // who may ask
	Pulls        Pulls                                             // reads pull requests; nil: that is not possible
	Results      map[string]string                                 // channels for the results of repositories that are only watched, by "owner/name"
	Memory       intake.Memory                                     // of requests without a repository, and of Results, which require it; nil: none
	Approvers    []string                                          // users who may stop, retry and approve tasks of others
	ConsoleURL   string                                            // where /tasks/{id} shows a run; empty: messages have no link to it
	Interval     time.Duration                                     // between two edits of a status message; 0: 3 s
	Limiter      intake.Limiter                                    // of edits and of requests in a thread; nil: none
	Ballot       Ballot                                            // keeps votes on answers; nil: answers have no buttons to vote
	HTTP         *http.Client                                      // nil: one on Transport. Each call is bounded by 10 s as well, an upload by a minute
	Log          *slog.Logger                                      // nil: discard
	Now          func() time.Time                                  // nil: time.Now
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

var (
	_ tasks.Source       = (*Source)(nil)
	_ tasks.Talker       = (*Source)(nil)
	_ tasks.Settler      = (*Source)(nil)
	_ tasks.ThreadReader = (*Source)(nil)
	_ tasks.Attacher     = (*Source)(nil)
	_ tasks.Recaller     = (*Source)(nil)
	_ tasks.Waiter       = (*Source)(nil)
)

// New checks the configuration. It does not talk to Slack.
func New(cfg Config) (*Source, error) {
	base, err := cfg.check()
	if err != nil {
		return nil, fmt.Errorf("configure Slack: %w", err)
	}
	log := cfg.Log.With("source", sourceName)
	api := slack.New(cfg.Token, slack.OptionAPIURL(cfg.APIURL), slack.OptionHTTPClient(cfg.HTTP), slack.OptionAppLevelToken(cfg.AppToken))
	c := &client{
		api: api, me: newIdentity(api, cfg.Now), people: newPeople(api, cfg.Now), limiter: cfg.Limiter,
		reactions: rate.NewLimiter(rate.Every(reactEvery), reactBurst), now: cfg.Now, log: log,
	}
	ts, console := &threads{c}, render.Console(strings.TrimRight(cfg.ConsoleURL, "/"))
	reports := &reporter{threads: ts, console: console, interval: cfg.Interval, votes: cfg.Ballot != nil}
	notices := &digest{threads: ts, console: console, results: cfg.Results, memory: cfg.Memory}
	g := &guard{access: cfg.Access, approvers: cfg.Approvers, people: c.people, pacer: intake.Pacer{Limiter: cfg.Limiter}}
	p := &picker{client: c, guard: g, memory: cfg.Memory, reports: reports}
	repos := &repositories{
		names: cfg.Repositories, channels: cfg.Channels, pulls: cfg.Pulls, log: log, reader: newReader(cmp.Or(cfg.GitHubURL, "https://github.com")),
	}
	l := &listener{
		secret: cfg.SigningSecret, limit: submitLimit, now: cfg.Now, log: log,
		inbound: &intake.Inbound{}, background: intake.NewBackground(log), pressing: intake.NewBackground(log),
		interpreter: &interpreter{client: c, guard: g, repos: repos, picker: p, digest: notices, reports: reports, names: cfg.People},
		buttons:     &buttons{client: c, guard: g, picker: p, ballot: cfg.Ballot},
	}
	s := &Source{
		reporter: reports, digest: notices, client: c, listener: l,
		briefer: &briefer{client: c, files: &downloader{http: cfg.HTTP, token: cfg.Token, api: base, limit: downloadLimit, log: log}},
	}
	if cfg.AppToken != "" {
		l.inbound.ConnectionFailed(errors.New("not connected to Slack yet"))
		s.socket = &socketMode{listener: l, api: api, timing: defaultTiming, taking: intake.NewBackground(log)}
	}
	return s, nil
}

// check reports everything that is wrong with a configuration and sets what it leaves open.
func (cfg *Config) check() (base *url.URL, err error) {
	var problems []error
	refuse := func(wrong bool, text string) {
		if wrong {
			problems = append(problems, errors.New(text))
		}
	}
	cfg.APIURL = cmp.Or(cfg.APIURL, slack.APIURL)
	base, err = url.Parse(cfg.APIURL)
	refuse(err != nil || base.Host == "" || !strings.HasSuffix(base.Path, "/"), "the API's URL is not a URL that ends in a slash")
	refuse(cfg.Token == "", "no bot token")
	refuse(cfg.SigningSecret+cfg.AppToken == "", "neither a signing secret nor an app token")
	refuse(len(cfg.Results) > 0 && cfg.Memory == nil, "no memory of results")
	if cfg.Interval <= 0 {
		cfg.Interval = 3 * time.Second
	}
	if cfg.HTTP == nil {
		cfg.HTTP = &http.Client{Transport: Transport()}
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return base, errors.Join(problems...)
}

// Transport keeps as many connections as there are calls at once: by default all but two are closed after each call.
func Transport() *http.Transport {
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: intake.MaxBackground, IdleConnTimeout: 90 * time.Second,
	}
}

// Name returns "slack".
func (s *Source) Name() string { return sourceName }

// Listen registers POST /slack/events and /slack/interactions and connects in Socket Mode, each if it is configured. Everything that it
// starts ends with ctx.
func (s *Source) Listen(ctx context.Context, mux *http.ServeMux, d *tasks.Desk) error {
	l := s.listener
	l.interpreter.desk, l.buttons.desk, l.buttons.picker.desk = d, d, d
	if l.secret != "" {
		l.register(ctx, mux)
	}
	if s.socket != nil {
		go s.socket.run(ctx)
	}
	return nil
}

// Inbound returns when the last event came from Slack, by HTTP or by Socket Mode (zero: none has), and why none can come: an error if
// Socket Mode is configured and there is no connection.
func (s *Source) Inbound() (last time.Time, err error) {
	return s.listener.inbound.Last(), s.listener.inbound.ConnectionErr()
}
