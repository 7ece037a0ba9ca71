package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/bradleyfalzon/ghinstallation/v2"
	"github.com/google/go-github/v60/github"
)

// attempt bounds every HTTP exchange with GitHub, including the refresh of a token.
const attempt = 10 * time.Second

// clients holds one client per credential, because go-github keeps the rate limit it has met in the client. It is safe for concurrent
// use.
type clients struct {
	cfg       Config
	base      *url.URL
	transport http.RoundTripper
	timeout   time.Duration
	own       *github.Client // of the token, or of the App itself, which may do little but list installations

	mu            sync.Mutex // guards the fields below; never held during a request
	installations map[int64]*github.Client
	git           map[string]*ghinstallation.Transport // by repository, each with a token for that repository only
	login         string                               // errand's, once known
}

func newClients(cfg Config, base *url.URL) (*clients, error) {
	c := &clients{
		cfg: cfg, base: base, transport: http.DefaultTransport, timeout: attempt,
		installations: map[int64]*github.Client{}, git: map[string]*ghinstallation.Transport{},
	}
	if h := cfg.HTTP; h != nil {
		if h.Transport != nil {
			c.transport = h.Transport
		}
		if h.Timeout > 0 {
			c.timeout = min(c.timeout, h.Timeout)
		}
	}
	if cfg.Token != "" {
		c.own = c.over(c.transport).WithAuthToken(cfg.Token)
		return c, nil
	}
	app, err := c.app()
	if err != nil {
		return nil, err
	}
	c.own = c.over(app)
	return c, nil
}

// over returns a client on a transport. It sets the URLs directly, because go-github's own way appends a path to them.
func (c *clients) over(rt http.RoundTripper) *github.Client {
	gh := github.NewClient(&http.Client{Transport: rt, Timeout: c.timeout, CheckRedirect: sameHost})
	gh.BaseURL, gh.UploadURL, gh.UserAgent = c.base, c.base, "errand"
	return gh
}

// sameHost refuses redirects to other hosts: the transports add credentials to everything they send.
func sameHost(r *http.Request, via []*http.Request) error {
	if r.URL.Scheme != via[0].URL.Scheme || r.URL.Host != via[0].URL.Host || len(via) >= 10 {
		return fmt.Errorf("GitHub redirects to %s", r.URL.Host)
	}
	return nil
}

// Client returns the client for a repository. installation is that of the event that the call is about, or 0 if it is not known: events
// of a repository's own webhook do not have it.
func (f *Forge) Client(ctx context.Context, repo string, installation int64) (*github.Client, error) {
	return f.clients.of(ctx, f.path(repo), installation)
}

func (c *clients) of(ctx context.Context, repo string, id int64) (*github.Client, error) {
	if c.cfg.Token != "" {
		return c.own, nil
	}
	if id == 0 {
		git, err := c.repository(ctx, repo)
		if err != nil {
			return nil, err
		}
		id = git.InstallationID()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.installations[id] == nil {
		t, err := c.installed(id)
		if err != nil {
			return nil, err
		}
		c.installations[id] = c.over(t)
	}
	return c.installations[id], nil
}

// me returns the login under which GitHub shows what errand writes.
func (c *clients) me(ctx context.Context) (string, error) {
	c.mu.Lock()
	login := c.login
	c.mu.Unlock()
	if login != "" {
		return login, nil
	}
	if c.cfg.Token != "" {
		user, _, err := c.own.Users.Get(ctx, "")
		if err != nil {
			return "", fmt.Errorf("read errand's login: %w", err)
		}
		login = user.GetLogin()
	} else {
		app, _, err := c.own.Apps.Get(ctx, "")
		if err != nil {
			return "", fmt.Errorf("read errand's login: %w", err)
		}
		login = app.GetSlug() + "[bot]"
	}
	if login == "" || login == "[bot]" {
		return "", errors.New("read errand's login: the answer has no name")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.login = login
	return login, nil
}

// app returns a transport that signs as the App. Each installation needs its own, because ghinstallation writes to it when it refreshes a
// token.
func (c *clients) app() (*ghinstallation.AppsTransport, error) {
	t, err := ghinstallation.NewAppsTransport(tokenRefusals{c.transport}, c.cfg.AppID, c.cfg.AppKey)
	if err != nil {
		return nil, fmt.Errorf("read the App's key: %w", err)
	}
	t.BaseURL = strings.TrimRight(c.base.String(), "/")
	return t, nil
}

func (c *clients) installed(id int64) (*ghinstallation.Transport, error) {
	app, err := c.app()
	if err != nil {
		return nil, err
	}
	return ghinstallation.NewFromAppsTransport(app, id), nil
}

// repository returns a transport for the installation of a repository.
func (c *clients) repository(ctx context.Context, repo string) (*ghinstallation.Transport, error) {
	c.mu.Lock()
	t := c.git[repo]
	c.mu.Unlock()
	if t != nil {
		return t, nil
	}
	owner, name, _ := strings.Cut(repo, "/")
	found, _, err := c.own.Apps.FindRepositoryInstallation(ctx, owner, name)
	if err != nil {
		return nil, fmt.Errorf("find installation for %s: %w", repo, err)
	}
	if t, err = c.installed(found.GetID()); err != nil {
		return nil, err
	}
	t.InstallationTokenOptions = &github.InstallationTokenOptions{Repositories: []string{name}}
	if c.cfg.ReadOnly(repo) {
		t.InstallationTokenOptions.Permissions = &github.InstallationPermissions{Contents: new("read")}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.git[repo] = t
	return t, nil
}

// password returns the password for the git remote of a repository.
func (c *clients) password(ctx context.Context, repo string) (string, error) {
	if c.cfg.Token != "" {
		return c.cfg.Token, nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	t, err := c.repository(ctx, repo)
	if err != nil {
		return "", err
	}
	token, err := t.Token(ctx)
	if err != nil {
		// The App may have been reinstalled: let the next attempt look up the installation.
		c.mu.Lock()
		delete(c.git, repo)
		c.mu.Unlock()
	}
	return token, err
}

// tokenRefusals turns a response that refuses the App a token into an error, as go-github does with all others. ghinstallation would not
// read its body, nor close it.
type tokenRefusals struct{ http.RoundTripper }

// RoundTrip returns the error of github.CheckResponse if a token is refused.
func (t tokenRefusals) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.RoundTripper.RoundTrip(r)
	if err != nil || !strings.HasSuffix(r.URL.Path, "/access_tokens") {
		return resp, err
	}
	if err := github.CheckResponse(resp); err != nil {
		_ = resp.Body.Close()
		return nil, err
	}
	return resp, nil
}
