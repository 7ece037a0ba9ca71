package github

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/errand-fleet/errand/forge"
)

// Config selects a GitHub and an identity there: the user of a token, or an App.
type Config struct {
	APIURL string // base of the REST API; ends with a slash
	URL    string // of the site, whose repositories are cloned; no slash at its end

	Token  string
	AppID  int64
	AppKey []byte // of the App, in PEM

	ReadOnly func(repo string) bool // reports whether nothing may be written to a repository; nil: everything may

	HTTP *http.Client     // provides the transport, and the timeout if it is below 10 s; nil: http.DefaultTransport
	Log  *slog.Logger     // nil: discard
	Now  func() time.Time // nil: time.Now
}

// Forge is a GitHub, github.com or an enterprise server. It is safe for concurrent use.
type Forge struct {
	cfg         Config
	host        string // of the site
	clients     *clients
	permissions Recent[forge.Permission]
}

var _ forge.Forge = (*Forge)(nil)

// New checks the configuration. It does not talk to GitHub.
func New(cfg Config) (*Forge, error) {
	base, err := url.Parse(cfg.APIURL)
	site, _ := url.Parse(cfg.URL)
	switch {
	case err != nil || base.Host == "" || !strings.HasSuffix(base.Path, "/"):
		err = errors.New("the API's URL does not end in a slash")
	case cfg.Token == "" && cfg.AppID == 0:
		err = errors.New("neither a token nor an App")
	case cfg.Token != "" && cfg.AppID != 0:
		err = errors.New("both a token and an App")
	}
	if err != nil {
		return nil, fmt.Errorf("configure GitHub: %w", err)
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.ReadOnly == nil {
		cfg.ReadOnly = func(string) bool { return false }
	}
	c, err := newClients(cfg, base)
	if err != nil {
		return nil, fmt.Errorf("configure GitHub: %w", err)
	}
	f := &Forge{cfg: cfg, clients: c}
	if site != nil {
		f.host = site.Host
	}
	return f, nil
}

// Name returns "github".
func (f *Forge) Name() string { return "github" }

// CloneURL returns the git remote of a repository.
func (f *Forge) CloneURL(repo string) string { return f.cfg.URL + "/" + f.path(repo) + ".git" }

// path returns the name of a repository without this forge's host.
func (f *Forge) path(repo string) string {
	if host, path, found := strings.Cut(repo, "/"); found && f.host != "" && strings.EqualFold(host, f.host) {
		return path
	}
	return repo
}

// Credential returns what opens the git remote of a repository: the token, or one of the App's installation that opens this repository
// only. A *forge.RefusedError means that trying again does not help.
func (f *Forge) Credential(ctx context.Context, repo string) (username, password string, err error) {
	password, err = f.clients.password(ctx, f.path(repo))
	if err != nil {
		return "", "", f.Explain("get a credential for "+repo, err)
	}
	return "x-access-token", password, nil
}

// Login returns the account under which GitHub shows what errand writes.
func (f *Forge) Login(ctx context.Context) (string, error) { return f.clients.me(ctx) }

// IsApp reports whether errand is an App.
func (f *Forge) IsApp() bool { return f.cfg.Token == "" }

// IsReadOnly reports whether nothing may be written to a repository.
func (f *Forge) IsReadOnly(repo string) bool { return f.cfg.ReadOnly(repo) }
