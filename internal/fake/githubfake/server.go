// Package githubfake is a GitHub of our own for tests and for the demo: the
// REST API over real HTTP, signed webhooks, and a real smart-HTTP git remote
// (git http-backend behind net/http/cgi). Nothing of the client library is
// reused here, so that go-github, ghinstallation and git meet a peer that can
// disagree with them.
//
// # What it promises
//
//   - What a client sees is what git says: diffs, patches, commits, merge
//     conflicts and pull request heads are computed by git on bare
//     repositories, and a push over HTTP moves the pull requests it concerns.
//   - The refusals that shape our code are GitHub's: wrong or missing
//     credentials, check runs by a plain token, token permissions, bodies over
//     65,536 characters, review comments outside the diff (the whole review is
//     refused), diffs that are too large, pushes of workflows.
//   - Every call is recorded, any answer can be replaced, lost or held back
//     (Fail), and Wait is notified of every change instead of polling.
//
// # What it does not promise
//
// Of GraphQL it has what REST lacks: the threads of reviews (schema.graphql).
// It has no teams but those of who logs in (RegisterOAuth), no branch protection
// and no rate limits (use Fail). A route it does not know answers 404
// and shows in Calls with an empty pattern.
//
// # Concurrency
//
// Every exported method may be called from any goroutine, also while webhooks
// are being delivered and from inside a webhook receiver. Unexported methods
// expect Server.mu to be held unless they say otherwise; no delivery and no
// smart-HTTP transfer ever happens under it.
package githubfake

import (
	"context"
	"crypto/rsa"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/errand-fleet/errand/internal/fake/contract"
)

// apiPrefix is where REST lives: the path GitHub Enterprise Server uses, so
// that clone addresses keep the root.
const apiPrefix = "/api/v3"

// Config says who is known to the fake. The zero value is usable.
type Config struct {
	Addr  string // where to listen; a free loopback port when empty
	Dir   string // where the bare repositories live; a temporary directory, removed by Close, when empty
	Token string // the one personal access token that is accepted; "ghp_test" when empty

	WebhookSecret string // "github-secret" when empty

	AppID          int64          // 0: no App exists, and payloads carry no installation
	AppKey         *rsa.PublicKey // verifies the App's JWT; required with AppID
	InstallationID int64          // 1 when zero; all repositories but forks belong to it

	// SuspendedID is another installation, which its account has suspended; 0: no such installation.
	SuspendedID int64

	// Permissions are what the App was granted when it was installed. Nil means all that has a route here.
	Permissions map[string]string

	// TokenLife is how long an installation token lives. Zero means GitHub's hour.
	TokenLife time.Duration

	// BotLogin is who the credentials speak for: the token as BotLogin, the
	// App's installation as BotLogin + "[bot]". "errand" when empty.
	BotLogin string

	// Workflows lets the credentials push changes of .github/workflows: the
	// scope "workflow" of a token, the permission "workflows" of an App.
	Workflows bool

	// Events are the subscribed webhooks. Nil means pull_request, issues,
	// issue_comment, pull_request_review,
	// pull_request_review_comment, check_run and status; "push" is known too. Send does not ask.
	Events []string
	// Quiet suppresses the webhooks GitHub would send for what clients do
	// through REST and git (our own comments and pushes among them).
	Quiet bool

	// HookTimeout is how long the answer to a webhook may take. Zero means GitHub's 10 s.
	HookTimeout time.Duration

	// Now dates everything, token expiry and JWT checks included; time.Now
	// when nil. ghinstallation always signs with the real clock.
	Now func() time.Time
}

// Server is one fake GitHub. Create it with New, end it with Close.
type Server struct {
	cfg     Config
	url     string
	ownDir  bool   // Dir is ours to remove
	backend string // path of git-http-backend

	http      *http.Server
	rest, web []route      // filled by New, then read only
	client    *http.Client // sends webhooks
	ctx       context.Context
	cancel    context.CancelFunc
	work      sync.WaitGroup // requests being answered and the echo goroutine

	mu         sync.Mutex // guards all below, and everything inside a Repo
	closed     bool
	change     chan struct{}       // closed and replaced at every change
	repos      map[string]*Repo    // by lower-case full name
	tokens     map[string]grant    // installation tokens handed out
	oauth      oauth               // logins of people
	manifests  map[string]manifest // of Apps that a person has confirmed, by code
	lastID     int64
	calls      []*Call
	failures   []*planned
	breaches   contract.Breaches // of GitHub's description; see Breaches
	hook       string
	deliveries []*Delivery
	echoes     []event // waiting for the echo goroutine
	echoing    bool

	uninstalled bool // the App was created of a manifest and is not installed
}

// New starts a fake. It needs git with its http-backend.
func New(cfg Config) (*Server, error) {
	if cfg.AppID != 0 && cfg.AppKey == nil {
		return nil, errors.New("config: AppID without AppKey")
	}
	cfg.fill()
	s := &Server{
		cfg:    cfg,
		client: &http.Client{Transport: &http.Transport{}, Timeout: cfg.HookTimeout},
		change: make(chan struct{}),
		repos:  map[string]*Repo{},
		tokens: map[string]grant{},
		lastID: firstID,
	}
	if err := s.prepareDir(); err != nil {
		return nil, err
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if err := s.findBackend(); err != nil {
		s.Close()
		return nil, err
	}
	s.addRoutes()
	ln, err := net.Listen("tcp", cfg.Addr)
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("listen on %s: %w", cfg.Addr, err)
	}
	s.url = "http://" + ln.Addr().String()
	// The log would only repeat what a test did on purpose (cut connections).
	s.http = &http.Server{Handler: s, ErrorLog: log.New(io.Discard, "", 0)}
	s.work.Go(func() { _ = s.http.Serve(ln) })
	return s, nil
}

func (c *Config) fill() {
	for _, d := range []struct {
		field *string
		value string
	}{
		{&c.Addr, "127.0.0.1:0"},
		{&c.Token, "ghp_test"},
		{&c.WebhookSecret, "github-secret"},
		{&c.BotLogin, "errand"},
	} {
		if *d.field == "" {
			*d.field = d.value
		}
	}
	c.BotLogin = strings.TrimSuffix(c.BotLogin, "[bot]")
	if c.InstallationID == 0 {
		c.InstallationID = 1
	}
	if c.Events == nil {
		c.Events = []string{
			"pull_request", "issues", "issue_comment", "pull_request_review",
			"pull_request_review_comment", "check_run", "status",
		}
	}
	if c.TokenLife == 0 {
		c.TokenLife = tokenLife
	}
	if c.HookTimeout == 0 {
		c.HookTimeout = hookTimeout
	}
	if c.Permissions == nil {
		c.Permissions = permissions()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
}

// prepareDir makes the directory absolute: git runs inside the repositories.
func (s *Server) prepareDir() (err error) {
	if s.cfg.Dir == "" {
		s.ownDir = true
		s.cfg.Dir, err = os.MkdirTemp("", "githubfake-")
	} else {
		s.cfg.Dir, err = filepath.Abs(s.cfg.Dir)
	}
	if err != nil {
		return fmt.Errorf("prepare directory: %w", err)
	}
	return os.MkdirAll(s.home(), 0o700)
}

func (s *Server) home() string { return filepath.Join(s.cfg.Dir, ".home") }

// addRoutes registers everything the fake answers. The patterns are what Fail
// and Calls take.
func (s *Server) addRoutes() {
	s.appRoutes()
	s.hookRoutes()
	s.repoRoutes()
	s.contentRoutes()
	s.pullRoutes()
	s.commentRoutes()
	s.reviewRoutes()
	s.statusRoutes()
	s.checkRoutes()
	s.ciRoutes()
	s.branchRoutes()
	s.gitRoutes()
	s.graphqlRoutes()
	s.lineRoutes()
	s.issueRoutes()
	s.oauthRoutes()
	s.manifestRoutes()
}

// URL is the web and clone base without a trailing slash:
// URL()+"/acme/api.git" can be cloned.
func (s *Server) URL() string { return s.url }

// APIURL is the REST base with the trailing slash go-github wants.
func (s *Server) APIURL() string { return s.url + apiPrefix + "/" }

// ServeHTTP implements http.Handler; New has already put it on a listener.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		panic(http.ErrAbortHandler)
	}
	s.work.Add(1)
	s.mu.Unlock()
	defer s.work.Done()

	req, routes := &request{Request: r, git: true}, s.web
	if r.URL.Path == graphqlPath {
		r = r.Clone(r.Context())
		r.URL.Path = apiPrefix + "/graphql"
	}
	if strings.HasPrefix(r.URL.Path, apiPrefix+"/") {
		req, routes = &request{Request: r.Clone(r.Context())}, s.rest
		req.URL.Path, req.URL.RawPath = strings.TrimPrefix(r.URL.Path, apiPrefix), ""
	}
	s.serve(w, req, find(routes, req))
}

// Close cuts all connections, waits for what is being answered, ends every git
// process and removes the temporary directory. It may be called twice.
func (s *Server) Close() {
	s.mu.Lock()
	already := s.closed
	s.closed = true
	s.mu.Unlock()
	if already {
		return
	}
	s.cancel()
	if s.http != nil {
		_ = s.http.Close()
	}
	s.work.Wait()
	s.client.CloseIdleConnections()
	if s.ownDir {
		_ = os.RemoveAll(s.cfg.Dir)
	}
	if all := s.Breaches(); len(all) > 0 {
		panic("githubfake: GitHub's description does not allow these requests or answers:\n" + strings.Join(all, "\n"))
	}
}

// now is the current time at GitHub's resolution.
func (s *Server) now() time.Time { return s.cfg.Now().UTC().Truncate(time.Second) }

// firstID is large, so that identities sort as text as they do as numbers, as GitHub's have for years: tasks of one
// second are ordered by it.
const firstID = 1_000_000

// id hands out the next identity; all kinds of things share one sequence.
func (s *Server) id() int64 {
	s.lastID++
	return s.lastID
}
