// Package github implements [forge.Forge] for github.com and GitHub Enterprise Server, as the user of a token or as an
// App.
//
// It promises:
//   - Every HTTP attempt ends within 10 seconds, and no credential follows a redirect to another host.
//   - An installation token for git opens one repository; for a read-only repository it allows reading only.
//   - Publish keeps one open pull request per branch. It edits only errand's section of the description, and never
//     merges, approves or closes anything. MarkReady changes only errand's own pull requests.
//   - Rate limits become *forge.LimitError, permanent refusals *forge.RefusedError.
//
// [App.Manifest] lists the permissions and events that the App needs, and [Forge.Diagnose] checks whether it has them.
// The source of GitHub events, tasks/github, uses [Forge.Client] for everything that only GitHub has, such as review
// comments.
package github

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"

	"github.com/errand-fleet/errand/forge"
	"github.com/errand-fleet/errand/internal/cache"
)

// Config selects a GitHub and an identity there: the user of a token, or an App.
type Config struct {
	APIURL string // base of the REST API; ends with a slash
	URL    string // of the site, whose repositories are cloned; no slash at its end

	Token  string
	AppID  int64
	AppKey []byte // of the App, in PEM

	Polled   bool                   // there are no webhooks
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
	permissions *cache.Cache[access]
	private     *cache.Cache[bool]
	addresses   *cache.Cache[string] // by login
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
	f := &Forge{cfg: cfg, clients: c, permissions: Recent[access](cfg.Now), private: Recent[bool](cfg.Now)}
	f.addresses = &cache.Cache[string]{Limit: 3 * attempt, Now: cfg.Now}
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

// Credential returns the credential for the git remote of a repository: the configured token, or a token of the App's
// installation that is limited to this repository. A *forge.RefusedError means that trying again does not help.
func (f *Forge) Credential(ctx context.Context, repo string) (username, password string, err error) {
	password, err = f.clients.password(ctx, f.path(repo))
	if err != nil {
		return "", "", f.Explain("get a credential for "+repo, err)
	}
	return "x-access-token", password, nil
}

// Login returns the account under which GitHub shows what errand writes.
func (f *Forge) Login(ctx context.Context) (string, error) { return f.clients.me(ctx) }

// Address returns the login of an account and the address to which GitHub attributes commits without showing the real
// one. An account's ID stays when it is renamed.
func (f *Forge) Address(ctx context.Context, repo, login string) (string, error) {
	if login == "" {
		var err error
		if login, err = f.Login(ctx); err != nil {
			return "", err
		}
	}
	return f.addresses.Get(ctx, login, func(ctx context.Context) (string, error) {
		what := "look up the account " + login
		if !IsLogin(login) {
			return "", fmt.Errorf("%s: %w", what, forge.ErrNotFound)
		}
		gh, err := f.Client(ctx, repo, 0)
		if err != nil {
			return "", f.Explain(what, err)
		}
		user, _, err := gh.Users.Get(ctx, url.PathEscape(login))
		if err != nil {
			return "", f.Explain(what, err)
		}
		host, _, _ := strings.Cut(f.host, ":")
		return fmt.Sprintf("%s <%d+%s@users.noreply.%s>", user.GetLogin(), user.GetID(), user.GetLogin(), host), nil
	})
}

// IsApp reports whether errand is an App.
func (f *Forge) IsApp() bool { return f.cfg.Token == "" }

// IsReadOnly reports whether nothing may be written to a repository.
func (f *Forge) IsReadOnly(repo string) bool { return f.cfg.ReadOnly(repo) }

// GraphQL sends a query to GitHub's GraphQL API, which go-github does not know, and decodes the data of the response
// into into. That API reports errors in a response of status 200; GraphQL returns them as REST would, so that
// StatusCode, Permanent and RetryAfter understand them.
func GraphQL(ctx context.Context, gh *github.Client, query string, vars map[string]any, into any) error {
	path := "graphql"
	if strings.HasSuffix(gh.BaseURL.Path, "/api/v3/") {
		path = "../graphql" // on an enterprise server
	}
	req, err := gh.NewRequest(http.MethodPost, path, map[string]any{"query": query, "variables": vars})
	if err != nil {
		return fmt.Errorf("make query: %w", err)
	}
	var answer struct {
		Data   json.RawMessage  `json:"data"`
		Errors []graphqlProblem `json:"errors"`
	}
	resp, err := gh.Do(ctx, req, &answer)
	if err != nil {
		return fmt.Errorf("query: %w", err)
	}
	if len(answer.Errors) > 0 { // there may be partial data, but all of it is needed
		return fmt.Errorf("query: %w", answer.Errors[0].asREST(resp))
	}
	if err := json.Unmarshal(answer.Data, into); err != nil {
		return fmt.Errorf("read answer of query: %w", err)
	}
	return nil
}

// graphqlProblem is one of the errors of a response.
type graphqlProblem struct {
	Type       string `json:"type"`
	Message    string `json:"message"`
	Extensions struct {
		Code string `json:"code"` // set if the query is invalid, such as undefinedField
	} `json:"extensions"`
}

// asREST returns the error that REST would have returned. An error without a type is GitHub's own and may be temporary.
func (p graphqlProblem) asREST(resp *github.Response) error {
	code := 0
	switch p.Type {
	case "RATE_LIMITED", "RATE_LIMIT":
		return &github.RateLimitError{Rate: resp.Rate, Response: resp.Response, Message: p.Message}
	case "NOT_FOUND":
		code = http.StatusNotFound
	case "FORBIDDEN", "INSUFFICIENT_SCOPES":
		code = http.StatusForbidden
	default:
		if p.Extensions.Code == "" && p.Type != "UNPROCESSABLE" {
			return fmt.Errorf("GitHub says %s: %q", p.Type, p.Message)
		}
		code = http.StatusUnprocessableEntity
	}
	refused := *resp.Response
	refused.StatusCode = code
	return &github.ErrorResponse{Response: &refused, Message: p.Message}
}

// RecentLife is how long an answer of GitHub counts, from its question on. An account that lost its access may have
// errand work for as long.
const RecentLife = 30 * time.Second

// Recent returns a cache for answers of GitHub. A question that takes longer than its answer would count fails.
func Recent[T any](now func() time.Time) *cache.Cache[T] {
	return &cache.Cache[T]{Limit: RecentLife, Life: RecentLife, FromAsked: true, Now: now}
}

// loginForm matches logins. Other strings could be paths within GitHub's API.
var loginForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]*(\[bot\])?$`)

// IsLogin reports whether s has the form of a login.
func IsLogin(s string) bool { return loginForm.MatchString(s) }

// Permission returns what an account may do in a repository. See PermissionFor.
func (f *Forge) Permission(ctx context.Context, repo, login string) (forge.Permission, error) {
	return f.PermissionFor(ctx, repo, 0, login)
}

// AccountID returns the number of an account. It asks what Permission asks.
func (f *Forge) AccountID(ctx context.Context, repo, login string) (int64, error) {
	s, err := f.access(ctx, repo, 0, login)
	return s.id, err
}

// PermissionFor asks GitHub what an account may do in a repository: author_association in a payload is about
// membership, not permission, and as old as the event. The error is forge.ErrNotFound if GitHub does not know the
// account, and a *forge.RefusedError if errand may not ask. After any error the permission is PermissionNone.
func (f *Forge) PermissionFor(
	ctx context.Context, repo string, installation int64, login string,
) (forge.Permission, error) {
	s, err := f.access(ctx, repo, installation, login)
	if err != nil {
		return forge.PermissionNone, err
	}
	return s.level, nil
}

// access is the permission of an account in a repository, and the account's ID.
type access struct {
	level forge.Permission
	id    int64
}

func (f *Forge) access(ctx context.Context, repo string, installation int64, login string) (access, error) {
	none := access{level: forge.PermissionNone}
	if !IsLogin(login) {
		return none, nil
	}
	return f.permissions.Get(ctx, strings.ToLower(repo+" "+login), func(ctx context.Context) (access, error) {
		what := "ask what " + login + " may do in " + repo
		gh, err := f.Client(ctx, repo, installation)
		if err != nil {
			return none, f.Explain(what, err)
		}
		owner, name := f.split(repo)
		level, _, err := gh.Repositories.GetPermissionLevel(ctx, owner, name, url.PathEscape(login))
		if StatusCode(err) == http.StatusNotFound {
			return none, fmt.Errorf("%s: %w", what, forge.ErrNotFound)
		}
		if err != nil {
			return none, f.Explain(what, err)
		}
		return access{forge.Permission(level.GetPermission()), level.GetUser().GetID()}, nil
	})
}

// Private asks GitHub whether a repository is not public. An internal repository of an enterprise counts as private.
// The error is forge.ErrNotFound if errand cannot see it.
func (f *Forge) Private(ctx context.Context, repo string) (bool, error) {
	return f.private.Get(ctx, strings.ToLower(repo), func(ctx context.Context) (bool, error) {
		what := "ask whether " + repo + " is private"
		r, err := f.repository(ctx, repo)
		if StatusCode(err) == http.StatusNotFound {
			return false, fmt.Errorf("%s: %w", what, forge.ErrNotFound)
		}
		if err != nil {
			return false, f.Explain(what, err)
		}
		return r.GetVisibility() != "public" || r.GetPrivate(), nil
	})
}

// NameOf asks GitHub for the name of a repository, which redirects from earlier ones. The error is forge.ErrNotFound if
// errand cannot see it.
func (f *Forge) NameOf(ctx context.Context, repo string) (string, error) {
	r, err := f.repository(ctx, repo)
	if StatusCode(err) == http.StatusNotFound {
		return "", forge.ErrNotFound
	}
	return r.GetFullName(), err
}

func (f *Forge) repository(ctx context.Context, repo string) (*github.Repository, error) {
	gh, err := f.Client(ctx, repo, 0)
	if err != nil {
		return nil, err
	}
	owner, name := f.split(repo)
	r, _, err := gh.Repositories.Get(ctx, owner, name)
	return r, err
}
