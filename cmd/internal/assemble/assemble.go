// Package assemble builds the parts of errand from the configuration. Besides the main functions, it is the only place
// where the packages meet. A new source needs one more line in sources, and its settings in config.
package assemble

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/cmd/internal/metrics"
	"github.com/errand-fleet/errand/cmd/internal/traces"
	"github.com/errand-fleet/errand/cmd/internal/version"
	"github.com/errand-fleet/errand/config"
	"github.com/errand-fleet/errand/forge"
	githubforge "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/internal/cache"
	"github.com/errand-fleet/errand/internal/doctor"
	"github.com/errand-fleet/errand/internal/hostlist"
	"github.com/errand-fleet/errand/internal/redisbatch"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/store/objects"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/automation"
	"github.com/errand-fleet/errand/tasks/chat"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/github"
	"github.com/errand-fleet/errand/tasks/inbox"
	"github.com/errand-fleet/errand/tasks/people"
	"github.com/errand-fleet/errand/tasks/policy"
	"github.com/errand-fleet/errand/tasks/queue"
	"github.com/errand-fleet/errand/tasks/rights"
	"github.com/errand-fleet/errand/tasks/slack"
	"github.com/errand-fleet/errand/tasks/webhook"
	"github.com/errand-fleet/errand/tasks/worker"
	"github.com/errand-fleet/errand/workspace"
)

// workerSources returns the sources as a worker needs them.
func (p *Parts) workerSources() (list []tasks.Source) {
	for _, s := range p.Sources {
		list = append(list, s)
	}
	return list
}

// Source is a source in both of its places: on workers, and in front doors.
type Source interface {
	tasks.Source
	desk.Listener
}

// Parts are the parts that all programs of the fleet share. Close them when the program ends.
type Parts struct {
	Config   config.Config
	Log      *slog.Logger
	Redactor *agent.Redactor
	Redis    *redis.Client
	Store    *store.Store
	Queue    *queue.Queue
	Desk     *desk.Desk
	Sources  []Source
	Forge    forge.Forge  // nil if none is configured
	Metrics  http.Handler // of this process; servers must check a token, see MayScrape

	blocking     *redis.Client
	door         *redis.Client // the desk's
	connections  connections   // to Redis, of all clients
	policy       rights.Policy
	registry     *prometheus.Registry
	commands     func(ctx context.Context, repo string) ([]string, error) // a repository's checks; may be nil
	objects      objects.Bucket
	inbox        *inbox.Inbox // of what other programs send
	deliveries   *inbox.Inbox // of webhooks
	served       inbox.All    // by a front door
	webhooks     *webhook.Webhooks
	schedules    *automation.Source
	chat         *chat.Source
	notices      []store.Finding    // about the configuration
	redisChecked bool               // Redis has answered once
	joined       bool               // the data in Redis is known to be of this fleet
	parts        map[string]askPart // of the identity of the fleet, except its name
	traces       *traces.Exporter
	runner       *agent.Runner                 // of the worker; nil: this process has none
	model        cache.Cache[[]doctor.Finding] // what the last check of it found; each one sends requests
}

// Options are settings that tests change, except Process.
type Options struct {
	Process bool // the program owns the process: messages of libraries go to its log

	Wait   time.Duration // of a worker that takes one task, for that; 0: no limit
	Store  store.Config  // its durations
	Timing worker.Timing // of the worker
	Quiet  time.Duration // after a push; 0: the source's default
	Look   time.Duration // between two searches for missed events; 0: the source's default
	Status time.Duration // between two edits of a status message; 0: the source's default
}

// New builds the parts. It does not connect yet: an unreachable Redis shows in /readyz and in each request.
func New(c config.Config, log *slog.Logger, o Options) (*Parts, error) {
	p := &Parts{
		Config: c, Log: log, Redactor: redactor(c), registry: metrics.NewRegistry(version.String()),
		notices: Notices(c, os.Environ()),
		model:   cache.Cache[[]doctor.Finding]{Limit: 5 * time.Minute, Life: time.Minute, Now: time.Now},
	}
	var err error
	if p.policy, err = policyOf(c, p.Redactor); err != nil {
		return nil, err
	}
	p.Metrics = metrics.Handler(p.registry, log)
	p.connections.outage = &outage{log: log, explain: p.explain}
	if o.Process {
		redis.SetLogger(redisLog{p.calmLog()})
	}
	if p.Redis, err = p.client(); err != nil {
		return nil, err
	}
	// A separate client for followed streams keeps them from starving everything else.
	if p.blocking, err = p.client(); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	if p.objects, err = p.bucket(); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	address, _ := c.Redis.Address() // p.client has reported an error
	o.Store.Sentinels = address.Master != ""
	o.Store.Redis, o.Store.Blocking, o.Store.AllowOpen, o.Store.Replicas, o.Store.Objects =
		p.Redis, p.blocking, c.Redis.AllowOpen, c.Redis.Replicas, p.objects
	if p.Store, err = store.New(o.Store); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	p.Queue = queue.New(p.Store, p.Redis, c.Worker.RunLimit)
	if p.Desk, err = p.desk(o.Store); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	p.inboxes(len(c.Routing.Webhooks) > 0)
	if err := p.sources(o); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	p.parts = p.identityParts()
	p.webhooks = webhook.New(webhook.Config{
		Webhooks: webhooks(c, os.Getenv), Inbox: p.deliveries, Task: p.webhookBody,
	})
	return p, nil
}

// inboxes creates the inboxes. A receiver of webhooks that hangs delays only other webhooks.
func (p *Parts) inboxes(webhooks bool) {
	cfg := inbox.Config{Redis: p.Redis, Accepting: p.door, Redactor: p.Redactor, Log: p.calmLog()}
	if p.Config.Redis.Replicas > 0 {
		cfg.Replicate = p.Store.Replicate
	}
	cfg.Queue, cfg.AtOnce = inbox.Incoming, 64
	p.inbox = inbox.New(cfg)
	cfg.Queue, cfg.AtOnce = inbox.Outgoing, 8
	p.deliveries = inbox.New(cfg)
	p.served = inbox.All{p.inbox}
	if webhooks {
		p.served = append(p.served, p.deliveries)
	}
}

// desk builds the desk. It has a separate client, which batches concurrent events. Claims must be renewed in time, so
// they do not wait there. A caller that gives up returns at once, whatever Redis does; see [desk.Desk.Submit].
func (p *Parts) desk(c store.Config) (_ *desk.Desk, err error) {
	if p.door, err = p.client(); err != nil {
		return nil, err
	}
	redisbatch.Add(p.door)
	c.Redis = p.door
	s, err := store.New(c)
	if err != nil {
		return nil, err
	}
	desk := desk.New(s, queue.New(s, p.door, p.Config.Worker.RunLimit), p.policy, p.Log)
	return desk.Metered(metrics.NewDesk(p.registry).Submitted), nil
}

// Close exports the traces that wait, and closes the connections to Redis.
func (p *Parts) Close() error {
	var errs []error
	if p.traces != nil {
		p.traces.Close()
	}
	for _, c := range []*redis.Client{p.Redis, p.blocking, p.door} {
		if c != nil {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}

// bucket opens the configured objects, or a directory of this machine. A front door without a disk has none: it saves
// only what workers have to read.
func (p *Parts) bucket() (objects.Bucket, error) {
	if address := p.Config.Objects.URL; address != "" {
		return objects.Open(address)
	}
	dir, err := objects.OpenDir(filepath.Join(p.Config.Paths.State, "objects"), false)
	if err != nil {
		p.Log.Debug("no directory for objects", "err", err)
		return nil, nil //nolint:nilnil // then all values are in Redis
	}
	return dir, nil
}

// policyOf returns the policy of errand.yaml for repositories and tools. A rule that can never apply is an error.
func policyOf(c config.Config, r *agent.Redactor) (rights.Policy, error) {
	p := rights.Policy{
		Limit: c.Worker.RunLimit, Redactor: r, Choices: rights.Choices(c.Routing.Options),
		Limits: rights.Limits(c.Routing.Limits), Budgets: rights.Budgets(c.Routing.Budgets), People: peopleOf(c),
		Pools: pools(c), Egress: c.Routing.Egress,
		Fleet:    policy.Wish{Model: c.Model.Name, Instructions: c.Routing.Instructions},
		Channels: map[string]policy.Wish{},
		Rights:   &rights.ForgeRights{Unmapped: c.Routing.Unmapped(), Lists: c.Routing.Lists, Links: c.LinksAccounts()},
		Listed:   slices.Sorted(maps.Keys(c.Routing.Repositories)),
	}
	for id, one := range c.Routing.Channels {
		p.Channels[id] = policy.Wish{Model: one.Model, Effort: one.Effort, Instructions: one.Instructions}
	}
	if !p.Egress.Declared() {
		p.Egress = hostlist.Default()
	}
	p.Repository = func(name string) (rights.Repository, bool) {
		repo, ok := c.Routing.Repository(name)
		if !ok && len(c.Routing.Repositories) > 0 {
			return rights.Repository{}, false
		}
		return rights.Repository{
			Trusted: repo.Trusted, Base: repo.Base, Profile: agent.Profile(repo.Profile),
			Pool: tasks.ParsePool(repo.Pool), Open: repo.Open, Environment: repo.Declaration,
			Instructions: repo.Instructions,
		}, true
	}
	if site, err := url.Parse(c.GitHub.URL); err == nil {
		p.Host = site.Host
	}
	var problems config.Problems
	p.Rules, problems = rules(c)
	if problems = append(problems, environments(c)...); len(problems) > 0 {
		return rights.Policy{}, problems
	}
	return p, nil
}

// pools returns the names of the pools of repositories.
func pools(c config.Config) (names []string) {
	for _, repo := range c.Routing.Repositories {
		names = append(names, tasks.PoolName(repo.Pool))
	}
	if len(names) == 0 {
		names = append(names, tasks.DefaultPool)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// sources creates the configured sources.
func (p *Parts) sources(o Options) error {
	c, asked := p.Config, metrics.NewServices(p.registry)
	var notices slackBoard
	if c.GitHub.Enabled() {
		hub, err := githubforge.New(githubforge.Config{
			APIURL: c.GitHub.APIURL, URL: c.GitHub.URL, Token: c.GitHub.Token.Reveal(), AppID: c.GitHub.AppID,
			AppKey: []byte(c.GitHub.AppKey.Reveal()), Polled: c.GitHub.Poll > 0, ReadOnly: notices.Watches, Log: p.Log,
			HTTP: &http.Client{Transport: asked.Transport("github", http.DefaultTransport)},
		})
		if err != nil {
			return err
		}
		s, err := github.New(github.Config{
			Forge: hub, People: p.policy.People, WebhookSecret: c.GitHub.WebhookSecret.Reveal(),
			QuickPollEvery: c.GitHub.Poll,
			Repository:     func(name string) bool { _, ok := p.policy.Repository(name); return ok },
			Base:           func(name string) string { repo, _ := p.policy.Repository(name); return repo.Base },
			Repositories:   slices.Sorted(maps.Keys(c.Routing.Repositories)), Quiet: o.Quiet, PollEvery: o.Look,
			ForkLabel: c.Routing.GitHub.Label, Bots: c.Routing.GitHub.Bots,
			Board: &notices, Memory: p.Store.Memos, Inbox: p.inbox, Limiter: p.Store.Memos,
			ConsoleURL: c.HTTP.PublicURL, Log: p.Log,
		})
		if err != nil {
			return err
		}
		p.Sources, p.Forge, p.commands = append(p.Sources, s), hub, s.VerificationCommands
		p.policy.Rights.Forge = hub
	}
	if c.Slack.Enabled() {
		allowed := c.Routing.Slack
		s, err := slack.New(slack.Config{
			People: p.policy.People, Token: c.Slack.BotToken.Reveal(), APIURL: c.Slack.APIURL,
			SigningSecret: c.Slack.SigningSecret.Reveal(), AppToken: c.Slack.AppToken.Reveal(),
			Channels:     func(id string) (string, bool) { ch, ok := c.Routing.Channels[id]; return ch.Repository, ok },
			Repositories: slices.Sorted(maps.Keys(c.Routing.Repositories)), GitHubURL: c.GitHub.URL,
			Access: slack.Access{
				People: allowed.People, Teams: allowed.Teams, Channels: allowed.Channels, Bots: allowed.Bots,
			},
			Approvers: allowed.Approvers, Pulls: p.Forge, Results: c.Routing.Results(),
			Channelled: c.Routing.AutomationResults(), Memory: p.Store.Memos, Inbox: p.inbox,
			ConsoleURL: c.HTTP.PublicURL, LinkURL: linkURL(c), TaskURL: taskLinks(c).URL, Interval: o.Status,
			Limiter: p.Store.Memos, Redact: p.Redactor.String, Log: p.Log,
			HTTP: &http.Client{Transport: asked.Transport("slack", slack.Transport())},
		})
		if err != nil {
			return err
		}
		p.Sources, notices.slack = append(p.Sources, s), s
	}
	p.chat = chat.New(chat.Config{Dirs: c.Paths.Dirs, StateDir: c.Paths.State, Log: p.Log})
	p.Sources = append(p.Sources, p.chat)
	return p.automation(&notices)
}

// peopleOf returns the accounts of each person in the sources.
func peopleOf(c config.Config) (list people.People) {
	for _, name := range slices.Sorted(maps.Keys(c.Routing.People)) {
		one := c.Routing.People[name]
		list = append(list, people.Person{Name: name, Slack: one.Slack, GitHub: one.GitHub, Email: one.Email})
	}
	return list
}

// Worker creates the worker of this process. address is where its logs are served, see WorkerURL.
func (p *Parts) Worker(version, address string, o Options) (*worker.Worker, error) {
	c := p.Config
	runner, err := newRunner(c, p.Redactor, p.Log)
	if err != nil {
		return nil, err
	}
	p.runner = runner
	if p.policy.Plugins, err = plugins(c); err != nil {
		return nil, err
	}
	tellContainment(runner, p.Log)
	w := workspace.Config{
		Dir: filepath.Join(c.Paths.State, "workspace"),
		URL: func(repo string) string { return c.GitHub.URL + "/" + repo + ".git" }, Log: p.Log,
	}
	if p.Forge != nil {
		w.URL, w.Credential = p.Forge.CloneURL, p.Forge.Credential
	}
	// Git inherits no environment, but needs these behind a proxy. They are not in config, because they are standard
	// variables.
	for _, name := range []string{
		"HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "https_proxy", "http_proxy", "no_proxy", "SSL_CERT_FILE",
		"SSL_CERT_DIR", "GIT_SSL_CAINFO",
	} {
		if v := os.Getenv(name); v != "" {
			w.Env = append(w.Env, name+"="+v)
		}
	}
	if w.Signer, err = signer(c); err != nil {
		return nil, err
	}
	space, err := workspace.New(w)
	if err != nil {
		return nil, err
	}
	_, noMise := exec.LookPath("mise")
	secrets, exposed := repositorySecrets(c, false), repositorySecrets(c, true)
	metrics.NewDisk(p.registry, c.Paths.State)
	var meter worker.Meter = metrics.NewTasks(p.registry, slices.Sorted(maps.Keys(c.Routing.Repositories)))
	if c.Traces.URL() != "" {
		p.traces = traces.New(traces.Config{
			URL: c.Traces.URL(), Headers: maps.Collect(c.Traces.Pairs()), Version: version, Store: p.Store, Log: p.Log,
		})
		meter = p.traces.Meter(meter)
	}
	timing := o.Timing
	timing.Pack, timing.Shutdown = cmp.Or(timing.Pack, config.Pack), cmp.Or(timing.Shutdown, config.Shutdown)
	return worker.New(worker.Config{
		Store: p.Store, Queue: p.Queue, Runner: runner, Workspace: space, Sources: p.workerSources(), Policy: p.policy,
		Publisher: p.Forge, Commands: p.commands, Mise: noMise == nil, Author: c.Commits.Author, Ended: p.webhooks.Note,
		Secrets:    func(repo string) map[string]string { return secrets[strings.ToLower(repo)] },
		Exposed:    func(repo string) map[string]string { return exposed[strings.ToLower(repo)] },
		ConsoleURL: strings.TrimRight(c.HTTP.PublicURL, "/"),
		Pool:       tasks.ParsePool(c.Worker.Pool), Slots: c.Worker.Concurrency, Once: c.Worker.Alone, Wait: o.Wait,
		Memory: config.MemoryAvailable, IdleLimit: c.Worker.IdleLimit,
		Version: version, Credential: credentialName(c), LogDir: LogDir(c),
		URL: address, Retention: retention(c.Keep), Log: p.calmLog(), Timing: timing, Notices: p.notices,
		Digest: c.Digest(), Limits: runLimits(c.Worker), Disks: disks(c, w.Dir), Meter: meter,
	})
}

// runLimits returns the limits of a run in words.
func runLimits(w config.Worker) (list []string) {
	if w.RunLimit > 0 {
		list = append(list, "time "+tasks.Lasted(w.RunLimit))
	}
	for _, l := range []struct {
		n    int
		what string
	}{
		{w.Processes, "processes and threads"}, {w.MemoryGB, "GiB of memory"}, {w.DiskGB, "GiB added to the disk"},
	} {
		if l.n > 0 {
			list = append(list, fmt.Sprint(l.n, " ", l.what))
		}
	}
	return list
}

// disks returns the directories that runs write to, of which each may be a separate file system.
func disks(c config.Config, workspace string) []string {
	return []string{
		c.Paths.State, workspace, filepath.Join(workspace, "mirrors"), filepath.Join(workspace, "threads"), LogDir(c),
		os.TempDir(),
	}
}

// NewRunner returns a runner like that of a worker.
func NewRunner(c config.Config, log *slog.Logger) (*agent.Runner, error) {
	return newRunner(c, redactor(c), log)
}

// newRunner creates the runner, which starts the CLI.
func newRunner(c config.Config, r *agent.Redactor, log *slog.Logger) (*agent.Runner, error) {
	base := c.Model.BaseURL
	if !slices.Contains(c.Given, "ANTHROPIC_BASE_URL") {
		base = "" // the CLI treats its default address differently from a given one
	}
	cli := c.Worker.Claude
	if !slices.Contains(c.Given, "ERRAND_CLAUDE") {
		cli = "" // each run looks for it, first in this checkout
	}
	provider, err := modelCloud(c.Cloud, "", "")
	if err != nil {
		return nil, err
	}
	return agent.New(agent.Config{
		CLI: cli, LogDir: LogDir(c), BaseURL: base, Grace: config.Grace, Redactor: r, Log: log, Servers: servers(c),
		Registries: registries(c), Credentials: credentials(c), ModelHeaders: modelHeaders(c, c.Provider()),
		ModelToken: modelToken(c, c.Model.TokenCommand), Cloud: provider, ModelNames: modelNames(c.Model),
		Direct: c.Model.Gateway == config.GatewayOff, Models: askable(c),
		Prices:  modelPrices(c, c.Provider()),
		Sandbox: sandbox(c), Hidden: hidden(c), Shown: shown(c, hidden(c)), Secrets: secretFiles(c),
		Alone: c.Worker.Alone, MaxProcesses: c.Worker.Processes, MaxMemory: int64(c.Worker.MemoryGB) << 30,
		MaxDisk: int64(c.Worker.DiskGB) << 30,
		Credential: agent.Credential{
			APIKey: c.Model.APIKey.Reveal(), OAuthToken: c.Model.OAuthToken.Reveal(),
			AuthToken: c.Model.AuthToken.Reveal(),
		},
	})
}

// askable lists the models that gateways let runs use, in addition to a run's own. Empty means those that the CLI
// offers.
func askable(c config.Config) []string {
	list := slices.Clone(c.Routing.Options.Models)
	if len(list) > 0 && c.Model.Name != "" {
		list = append(list, c.Model.Name)
	}
	return list
}

// LogDir returns the directory of the run logs.
func LogDir(c config.Config) string { return filepath.Join(c.Paths.State, "logs") }
