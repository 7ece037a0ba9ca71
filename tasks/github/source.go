package github

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/errand-fleet/errand/tasks"
)

// Config says which GitHub to talk to, and as whom: as the user of a token or as an App.
type Config struct {
	People        tasks.People // who is who; names for posts
	APIURL        string       // base of the REST API, with a slash at its end
	WebhookSecret string       // required: without one, anybody's events would count

	Token  string
	AppID  int64
	AppKey []byte // of the App, in PEM

	Repository func(name string) (ok bool) // whether events of "owner/name" count; nil: all do

	Repositories []string      // that are looked at for what no event has brought; empty: none
	Look         time.Duration // between two looks; 0: DefaultLook

	ForkLabel  string           // who gives it to a pull request from a fork lets its head be reviewed; empty: DefaultForkLabel
	Bots       []string         // logins of other bots that may ask for something; see bots.go
	ForkRuns   int              // on forks of one author in a day; 0: DefaultForkRuns
	Limiter    Limiter          // of what may be asked for on a pull request; nil: there is none
	Board      Board            // where it is told what comes of repositories that are only watched; nil: there are none
	Memory     Memory           // of what was done with each pull request; required
	Quiet      time.Duration    // how long after a push the next one is waited for before a review starts; 0: DefaultQuiet
	ConsoleURL string           // where /tasks/{id} shows a run; empty: reports have no link to it
	HTTP       *http.Client     // its transport is used, and its timeout if that is below ours; nil: the default one
	Log        *slog.Logger     // nil: silence
	Now        func() time.Time // nil: time.Now
}

// What Config leaves open.
const (
	DefaultForkLabel = "errand"
	DefaultForkRuns  = 5
	DefaultLook      = 5 * time.Minute
	DefaultQuiet     = 30 * time.Second // lets people push once more what they have forgotten
)

// Memory keeps what is remembered of a pull request between its tasks, under a name, for some weeks after the last change.
type Memory interface {
	// Memo reads it; nil when there is nothing.
	Memo(ctx context.Context, name string) (json.RawMessage, error)
	// ChangeMemo makes of it what change says, which may be asked several times when others write meanwhile. nil leaves it as it is.
	ChangeMemo(ctx context.Context, name string, change func(json.RawMessage) (json.RawMessage, error)) error
}

// Source is GitHub as tasks sees it. Its fields never change after New, but for what it keeps in mind under locks of their own.
type Source struct {
	cfg     Config
	clients *clients
	inbound *inbound
	permits recent[permission]
	wishes  recent[wish]
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
	base, err := url.Parse(cfg.APIURL)
	refuse(err != nil || base.Host == "" || !strings.HasSuffix(base.Path, "/"), "the API's URL is not one that ends in a slash")
	refuse(cfg.Memory == nil, "no memory")
	refuse(cfg.ForkRuns < 0, "a negative number of runs on forks")
	refuse(cfg.WebhookSecret == "", "no webhook secret")
	refuse(cfg.Token == "" && cfg.AppID == 0, "neither a token nor an App")
	refuse(cfg.Token != "" && cfg.AppID != 0, "both a token and an App")
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
	c, err := newClients(cfg, base)
	if err != nil {
		return nil, fmt.Errorf("configure GitHub: %w", err)
	}
	return &Source{cfg: cfg, clients: c, inbound: &inbound{}, log: cfg.Log.With("source", "github")}, nil
}

// Name is "github".
func (s *Source) Name() string { return "github" }

// Credential opens the git remote of "owner/name": the token, or a fresh one of the App's installation that opens this repository
// alone. An *tasks.InputError says that trying again does not help.
func (s *Source) Credential(ctx context.Context, repo string) (username, password string, err error) {
	password, err = s.clients.password(ctx, repo)
	if err != nil {
		return "", "", s.sorted("get a credential for "+repo, err)
	}
	return "x-access-token", password, nil
}

// page is where people see a task: the console, or where its answer will be. It tells the tasks of one commit apart.
func (s *Source) page(o origin, id string) string {
	if s.cfg.ConsoleURL != "" {
		return s.cfg.ConsoleURL + "/tasks/" + id
	}
	return o.URL + "#" + id
}
