package github

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/bradleyfalzon/ghinstallation/v2"
	"github.com/google/go-github/v60/github"

	"github.com/errand-fleet/errand/forge"
	"github.com/errand-fleet/errand/internal/cache"
	"github.com/errand-fleet/errand/internal/untrusted"
)

// attempt bounds every HTTP exchange with GitHub, including the refresh of a token.
const attempt = 10 * time.Second

// clients holds one client per credential, because go-github keeps the rate limit it has met in the client. It is
// safe for concurrent use.
type clients struct {
	cfg       Config
	base      *url.URL
	transport http.RoundTripper
	timeout   time.Duration
	answers   answers
	own       *github.Client      // of the token, or of the App itself, which may do little but list installations
	login     cache.Cache[string] // errand's

	mu            sync.Mutex // guards the fields below; never held during a request
	installations map[int64]*github.Client
	refused       map[int64]bool                       // installations that no repository was found to have since
	git           map[string]*ghinstallation.Transport // by repository, each with a token for that repository only
}

func newClients(cfg Config, base *url.URL) (*clients, error) {
	c := &clients{
		cfg: cfg, base: base, transport: http.DefaultTransport, timeout: attempt,
		installations: map[int64]*github.Client{}, refused: map[int64]bool{},
		git:   map[string]*ghinstallation.Transport{},
		login: cache.Cache[string]{Limit: 3 * attempt, Now: cfg.Now},
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
	app, err := c.app(c.transport)
	if err != nil {
		return nil, err
	}
	c.own = c.over(app)
	return c, nil
}

// over returns a client on a transport. It sets the URLs directly, because go-github's own way appends a path to them.
func (c *clients) over(rt http.RoundTripper) *github.Client {
	gh := github.NewClient(&http.Client{
		Transport: &conditional{rt, &c.answers}, Timeout: c.timeout, CheckRedirect: sameHost,
	})
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

// Client returns the client for a repository. installation is that of the event that the call is about, or 0 if it is
// not known: events of a repository's own webhook do not have it.
func (f *Forge) Client(ctx context.Context, repo string, installation int64) (*github.Client, error) {
	return f.clients.of(ctx, f.path(repo), installation)
}

func (c *clients) of(ctx context.Context, repo string, id int64) (*github.Client, error) {
	if c.cfg.Token != "" {
		return c.own, nil
	}
	if id == 0 || repo != "" && c.wasRefused(id) {
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
	return c.login.Get(ctx, "", func(ctx context.Context) (login string, err error) {
		if c.cfg.Token != "" {
			var user *github.User
			user, _, err = c.own.Users.Get(ctx, "")
			login = user.GetLogin()
		} else {
			var app *github.App
			app, _, err = c.own.Apps.Get(ctx, "")
			login = app.GetSlug() + "[bot]"
		}
		if err == nil && (login == "" || login == "[bot]") {
			err = errors.New("the answer has no name")
		}
		if err != nil {
			return "", fmt.Errorf("read errand's login: %w", err)
		}
		return login, nil
	})
}

// app returns a transport on rt that signs as the App. Each installation needs its own, because ghinstallation writes
// to it when it refreshes a token.
func (c *clients) app(rt http.RoundTripper) (*ghinstallation.AppsTransport, error) {
	t, err := ghinstallation.NewAppsTransport(rt, c.cfg.AppID, c.cfg.AppKey)
	if err != nil {
		return nil, fmt.Errorf("read the App's key: %w", err)
	}
	t.BaseURL = strings.TrimRight(c.base.String(), "/")
	return t, nil
}

func (c *clients) installed(id int64) (*ghinstallation.Transport, error) {
	app, err := c.app(refusals{c.transport, func() { c.forget(id) }})
	if err != nil {
		return nil, err
	}
	return ghinstallation.NewFromAppsTransport(app, id), nil
}

// forget drops an installation that GitHub refuses: the App may have been reinstalled, which gives it another number.
func (c *clients) forget(id int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused[id] = true
	delete(c.installations, id)
	maps.DeleteFunc(c.git, func(_ string, t *ghinstallation.Transport) bool { return t.InstallationID() == id })
}

func (c *clients) wasRefused(id int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refused[id]
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
	delete(c.refused, found.GetID())
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
	return t.Token(ctx)
}

// refusals is the transport of an installation. It calls refused if GitHub refuses the installation's token, or refuses
// to make one.
type refusals struct {
	http.RoundTripper
	refused func()
}

// RoundTrip returns the error of github.CheckResponse if GitHub does not make a token, as go-github does with all other
// responses. ghinstallation would not read its body, nor close it.
func (t refusals) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusUnauthorized {
		t.refused()
	}
	if !strings.HasSuffix(r.URL.Path, "/access_tokens") {
		return resp, nil
	}
	if resp.StatusCode == http.StatusNotFound {
		// It is the installation that does not exist, not what the token is for.
		resp.StatusCode, resp.Status = http.StatusForbidden, "403 Forbidden"
	}
	if err := github.CheckResponse(resp); err != nil {
		_ = resp.Body.Close()
		if Permanent(err) {
			t.refused()
		}
		return nil, err
	}
	return resp, nil
}

// limitPause is how long to wait when GitHub does not say how long a rate limit lasts.
const limitPause = time.Minute

// RetryAfter reports whether err is one of GitHub's rate limits, and how long to wait. go-github v60 recognizes only
// some of them: every 429 and a 403 with only Retry-After are ordinary errors to it.
func RetryAfter(err error) (time.Duration, bool) {
	if e, ok := errors.AsType[*github.RateLimitError](err); ok {
		return until(e.Rate.Reset.Time), true
	}
	if e, ok := errors.AsType[*github.AbuseRateLimitError](err); ok {
		if e.RetryAfter == nil {
			return limitPause, true
		}
		return max(*e.RetryAfter, time.Second), true // go-github itself refuses all calls until then
	}
	code, header, message := response(err)
	if code == http.StatusUnprocessableEntity && strings.Contains(err.Error(), "submitted too quickly") {
		return limitPause, true // a content limit; GitHub reports it in errors, not in message
	}
	if code != http.StatusTooManyRequests && code != http.StatusForbidden {
		return 0, false
	}
	seconds, numErr := strconv.Atoi(header.Get("Retry-After"))
	switch {
	case numErr == nil:
		return max(time.Duration(seconds)*time.Second, time.Second), true
	case header.Get("X-RateLimit-Remaining") == "0":
		// Every response has the reset time, which may be an hour away, so use it only if the limit is exhausted.
		reset, _ := strconv.ParseInt(header.Get("X-RateLimit-Reset"), 10, 64)
		return until(time.Unix(reset, 0)), true
	case code == http.StatusTooManyRequests, strings.Contains(message, "secondary rate limit"):
		return limitPause, true
	}
	return 0, false // an ordinary 403
}

// until returns the time left until t, at least a second; limitPause if t is missing.
func until(t time.Time) time.Duration {
	if t.Unix() <= 0 {
		return limitPause
	}
	return max(time.Until(t), time.Second)
}

// response returns GitHub's response behind an error; the code is 0 without a response.
func response(err error) (code int, header http.Header, message string) {
	if e, ok := errors.AsType[*github.ErrorResponse](err); ok && e.Response != nil {
		return e.Response.StatusCode, e.Response.Header, e.Message
	}
	return 0, nil, ""
}

// StatusCode returns the HTTP status behind an error, or 0.
func StatusCode(err error) int {
	code, _, _ := response(err)
	return code
}

// Permanent reports whether GitHub would refuse the same call again: the object is gone, access is denied, or the
// request is invalid.
func Permanent(err error) bool {
	_, limited := RetryAfter(err)
	return !limited && slices.Contains([]int{
		http.StatusForbidden, http.StatusNotFound, http.StatusGone, http.StatusUnprocessableEntity,
		http.StatusUnavailableForLegalReasons,
	}, StatusCode(err))
}

// rateLimited says, for people, that a rate limit is the reason.
const rateLimited = "GitHub's rate limit"

// maxComplaint bounds GitHub's words in a complaint, in characters.
const maxComplaint = 200

// Complaint says why a call failed, as a clause for people, without addresses.
func Complaint(err error) string { return complaint(err, withoutAddresses) }

// complaint is Complaint with GitHub's words as they are edited.
func complaint(err error, edited func(string) string) string {
	if _, limited := RetryAfter(err); limited {
		return rateLimited
	}
	code, _, message := response(err)
	if code == 0 {
		return "GitHub does not answer as expected"
	}
	return fmt.Sprintf("GitHub says %d: %s", code, untrusted.Line(edited(message), maxComplaint))
}

// RateLimit turns a rate limit into a *forge.LimitError, and adds what failed to any other error.
func (f *Forge) RateLimit(what string, err error) error {
	if wait, ok := RetryAfter(err); ok {
		return fmt.Errorf("%s: %w", what, &forge.LimitError{At: f.cfg.Now().Add(wait), Why: rateLimited})
	}
	return fmt.Errorf("%s: %w", what, err)
}

// messages returns GitHub's words for why it refused a request.
func messages(err error) string {
	e, ok := errors.AsType[*github.ErrorResponse](err)
	if !ok {
		return ""
	}
	list := []string{e.Message}
	for _, one := range e.Errors {
		switch {
		case one.Message != "":
			list = append(list, one.Message)
		case one.Field != "":
			list = append(list, one.Field+" is "+one.Code)
		}
	}
	return strings.TrimRight(strings.Join(list, ": "), ".")
}

// missing says why a call failed where GitHub itself does not.
const missing = "it does not exist, or errand has no access to it"

// addresses are those of machines. GitHub names the fleet's own where an organisation permits only some.
var addresses = regexp.MustCompile(`\d+(\.\d+){3}|[[:xdigit:]]*:[[:xdigit:].]*:[[:xdigit:].:]+`)

// withoutAddresses is applied before a text is cut, which could leave a part of an address.
func withoutAddresses(text string) string { return addresses.ReplaceAllLiteralString(text, "…") }

// Explain is RateLimit for calls on behalf of people: a permanent failure becomes a *forge.RefusedError with GitHub's
// words, such as those about a list of permitted addresses, which nobody could guess, without the addresses.
func (f *Forge) Explain(what string, err error) error {
	switch {
	case StatusCode(err) == http.StatusUnauthorized:
		return &forge.RefusedError{Sentence: "GitHub does not accept errand's credentials. An " +
			"operator has to renew them (" + what + ")."}
	case Permanent(err):
		why := cmp.Or(untrusted.Line(withoutAddresses(messages(err)), 300), missing)
		if StatusCode(err) == http.StatusNotFound {
			why = missing
		}
		return &forge.RefusedError{Sentence: "GitHub did not let errand " + what + ": " + why + "."}
	}
	return f.RateLimit(what, err)
}
