package slack

import (
	"cmp"
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
)

// Config says which workspace to talk to, and as whom. Token is required, and SigningSecret or AppToken: whoever gives both is asked by HTTP
// and by Socket Mode.
type Config struct {
	People        tasks.People // who is who; names for posts
	Token         string       // of the bot, xoxb-…
	APIURL        string       // base of the Web API, with a slash at its end; empty: Slack's
	SigningSecret string       // proves that an event is Slack's: without one, none is taken by HTTP
	AppToken      string       // of the app, xapp-…: events are fetched in Socket Mode; empty: they are not

	Channels     func(channel string) (repository string, ok bool) // the repository a channel is about; nil: none has one
	Repositories []string                                          // "owner/name" of all that errand works on, where people can choose; empty: they name any, or work without one
	GitHubURL    string                                            // where addresses of repositories begin; empty: https://github.com
	Access       Access                                            // who may ask for something
	Pulls        Pulls                                             // looks at pull requests; nil: nobody can
	Results      map[string]string                                 // of repositories that are only watched, by "owner/name": the channel where it is told what comes of them
	Memory       intake.Memory                                     // of where that was told; required with Results
	Approvers    []string                                          // users who may stop, repeat and approve what others have asked for
	ConsoleURL   string                                            // where /tasks/{id} shows a run; empty: messages have no link to it
	Interval     time.Duration                                     // between two edits of a status message; 0: 3 s
	Limiter      intake.Limiter                                    // of our edits, and of what a thread may ask; nil: there is none
	Ballot       Ballot                                            // keeps what people think of answers; nil: they are not asked
	Shelf        Shelf                                             // keeps requests until somebody has chosen a repository; nil: who asks has to ask again
	Favourites   Favourites                                        // what was chosen last; goes with Shelf
	HTTP         *http.Client                                      // nil: one on Transport. Every call has a limit of 10 s beside its own, an upload of a minute
	Log          *slog.Logger                                      // nil: silence
	Now          func() time.Time                                  // nil: time.Now
}

// submitLimit keeps our promise of an answer within 3 s while Redis or Slack hang.
const submitLimit = 2500 * time.Millisecond

// Source is Slack as tasks sees it. Make it with New.
type Source struct {
	cfg         Config
	api         *slack.Client
	me          *identity
	people      *people
	background  *intake.Background // calls that no answer waits for
	taking      *intake.Background // events of Socket Mode on their way to the desk
	pressing    *intake.Background // interactions under way
	signs       *rate.Limiter      // of those that this process puts on messages
	inbound     *intake.Inbound
	pacer       intake.Pacer
	reader      reader
	log         *slog.Logger
	submitLimit time.Duration // only tests change it, and the next three
	fetchLimit  time.Duration
	hesitation  time.Duration
	lookEvery   time.Duration
	rhythm      rhythm
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
	var problems []error
	wrong := func(cond bool, text string) {
		if cond {
			problems = append(problems, errors.New(text))
		}
	}
	if cfg.APIURL == "" {
		cfg.APIURL = slack.APIURL
	}
	base, err := url.Parse(cfg.APIURL)
	wrong(err != nil || base.Host == "" || !strings.HasSuffix(base.Path, "/"), "the API's URL is not one that ends in a slash")
	wrong(cfg.Token == "", "no bot token")
	wrong(cfg.SigningSecret+cfg.AppToken == "", "neither a signing secret nor an app token")
	wrong(len(cfg.Results) > 0 && cfg.Memory == nil, "no memory of results")
	if err := errors.Join(problems...); err != nil {
		return nil, fmt.Errorf("configure Slack: %w", err)
	}
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
	cfg.ConsoleURL = strings.TrimRight(cfg.ConsoleURL, "/")
	api := slack.New(cfg.Token, slack.OptionAPIURL(cfg.APIURL), slack.OptionHTTPClient(cfg.HTTP), slack.OptionAppLevelToken(cfg.AppToken))
	log, inbound := cfg.Log.With("source", "slack"), &intake.Inbound{}
	if cfg.AppToken != "" {
		inbound.ConnectionFailed(errors.New("not connected to Slack yet"))
	}
	signs := rate.NewLimiter(rate.Every(signEvery), signBurst)
	return &Source{
		cfg: cfg, api: api, me: newIdentity(api, cfg.Now), people: newPeople(api, cfg.Now), log: log, background: intake.NewBackground(log),
		taking: intake.NewBackground(log), pressing: intake.NewBackground(log), signs: signs, inbound: inbound, pacer: intake.Pacer{Limiter: cfg.Limiter},
		reader: newReader(cmp.Or(cfg.GitHubURL, "https://github.com")), submitLimit: submitLimit, fetchLimit: fetchLimit, hesitation: hesitation, lookEvery: lookEvery, rhythm: slacksRhythm,
	}, nil
}

// Transport keeps as many connections as there are calls at once: by default all but two are closed after each, and TLS is greeted anew.
func Transport() *http.Transport {
	return &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: intake.MaxBackground, IdleConnTimeout: 90 * time.Second}
}

// Name is the prefix of the threads and the word in the IDs of the tasks that come from here.
func (s *Source) Name() string { return "slack" }

// link is a task's page in mrkdwn, under a label that is mrkdwn; empty when there is none.
func (s *Source) link(id, label string) string {
	if s.cfg.ConsoleURL == "" {
		return ""
	}
	return "<" + escape(s.taskURL(id)) + "|" + label + ">"
}

// taskURL is a task's page, where there is a console.
func (s *Source) taskURL(id string) string { return s.cfg.ConsoleURL + "/tasks/" + id }

// Inbound returns when the last event came from Slack, by HTTP or by Socket Mode (zero: none has), and why none can come: an error if
// Socket Mode is configured and there is no connection.
func (s *Source) Inbound() (last time.Time, err error) {
	return s.inbound.Last(), s.inbound.ConnectionErr()
}
