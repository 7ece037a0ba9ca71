package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/bradleyfalzon/ghinstallation/v2"
	"github.com/google/go-github/v60/github"
)

// attempt bounds every single HTTP exchange with GitHub, a refreshed token included.
const attempt = 10 * time.Second

// clients are our ways to talk to GitHub. There is one client per credential, because go-github keeps the rate limit it has met in
// the client. Safe for concurrent use.
type clients struct {
	cfg       Config
	base      *url.URL
	transport http.RoundTripper
	timeout   time.Duration
	own       *github.Client // by the token, or as the App itself, which may ask about installations and little else

	mu            sync.Mutex // guards all below; never held during a request
	installations map[int64]*github.Client
	git           map[string]*ghinstallation.Transport // by repository, each with a token for that one only
	login         string                               // ours, once known
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

// over is a client on a transport. The addresses are set directly: go-github's own way appends a path to them.
func (c *clients) over(rt http.RoundTripper) *github.Client {
	gh := github.NewClient(&http.Client{Transport: rt, Timeout: c.timeout, CheckRedirect: sameHost})
	gh.BaseURL, gh.UploadURL, gh.UserAgent = c.base, c.base, "errand"
	return gh
}

// sameHost keeps our credentials, which the transports add to whatever they send, from going where a redirect leads.
func sameHost(r *http.Request, via []*http.Request) error {
	if r.URL.Scheme != via[0].URL.Scheme || r.URL.Host != via[0].URL.Host || len(via) >= 10 {
		return fmt.Errorf("GitHub redirects to %s", r.URL.Host)
	}
	return nil
}

// of is the client for a task's repository.
func (c *clients) of(ctx context.Context, o origin) (*github.Client, error) {
	if c.cfg.Token != "" {
		return c.own, nil
	}
	id := o.Installation
	if id == 0 { // the event came from a webhook of the repository, not of the App
		git, err := c.repository(ctx, o.Repo)
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

// me is the login by which GitHub shows what we write.
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
			return "", fmt.Errorf("ask GitHub who we are: %w", err)
		}
		login = user.GetLogin()
	} else {
		app, _, err := c.own.Apps.Get(ctx, "")
		if err != nil {
			return "", fmt.Errorf("ask GitHub who we are: %w", err)
		}
		login = app.GetSlug() + "[bot]"
	}
	if login == "" || login == "[bot]" {
		return "", errors.New("ask GitHub who we are: the answer has no name")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.login = login
	return login, nil
}
