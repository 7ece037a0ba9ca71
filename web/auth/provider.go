package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/google/go-github/v60/github"
	"golang.org/x/oauth2"
)

// Provider is where people log in: an OpenID provider, or GitHub by its OAuth. It may be used from any number of
// goroutines.
type Provider struct {
	Issuer   string
	ClientID string
	Secret   string
	Redirect string   // the address of /login/callback
	Scopes   []string // in addition to openid, profile and email
	Groups   string   // claim with the groups
	Account  string   // claim with the account at the forge; empty: none
	GitHub   string   // base of GitHub's API if the issuer is a GitHub, ending in a slash
	HTTP     *http.Client

	found atomic.Pointer[oidc.Provider] // the issuer's description, once it has answered
}

// errAway means that the provider did not answer, or answered something else than its protocol.
var errAway = errors.New("the provider is away")

// providerTime bounds the requests of one login to the provider.
const providerTime = 15 * time.Second

// name returns the provider's name for people.
func (p *Provider) name() string {
	if p.GitHub != "" {
		return "GitHub"
	}
	if u, err := url.Parse(p.Issuer); err == nil {
		return u.Hostname()
	}
	return p.Issuer
}

// client returns the OAuth client, and a context for its requests. The provider is asked for its addresses when the
// first person logs in, so that errand starts without it.
func (p *Provider) client(ctx context.Context) (context.Context, *oauth2.Config, error) {
	ctx = oidc.ClientContext(ctx, p.HTTP) // also oauth2's
	c := &oauth2.Config{ClientID: p.ClientID, ClientSecret: p.Secret, RedirectURL: p.Redirect}
	if p.GitHub != "" {
		c.Endpoint = oauth2.Endpoint{
			AuthURL: p.Issuer + "/login/oauth/authorize", TokenURL: p.Issuer + "/login/oauth/access_token",
			AuthStyle: oauth2.AuthStyleInParams,
		}
		c.Scopes = []string{"read:user", "user:email", "read:org"}
		return ctx, c, nil
	}
	found := p.found.Load() // without a lock: people would wait for each other while the provider is away
	if found == nil {
		var err error
		if found, err = oidc.NewProvider(ctx, p.Issuer); err != nil {
			return ctx, nil, fmt.Errorf("discover OpenID provider: %w: %w", errAway, err)
		}
		p.found.Store(found)
	}
	c.Endpoint, c.Scopes = found.Endpoint(), append([]string{oidc.ScopeOpenID, "profile", "email"}, p.Scopes...)
	return ctx, c, nil
}

// address returns where a browser goes to log in.
func (p *Provider) address(ctx context.Context, a attempt) (string, error) {
	_, c, err := p.client(ctx)
	if err != nil {
		return "", err
	}
	return c.AuthCodeURL(a.State, oauth2.S256ChallengeOption(a.Verifier), oidc.Nonce(a.Nonce)), nil
}

// identify exchanges the code that a browser came back with for the identity of the person.
func (p *Provider) identify(ctx context.Context, code string, a attempt) (Identity, error) {
	ctx, c, err := p.client(ctx)
	if err != nil {
		return Identity{}, err
	}
	token, err := c.Exchange(ctx, code, oauth2.VerifierOption(a.Verifier))
	if err != nil {
		return Identity{}, fmt.Errorf("exchange code: %w", away(err))
	}
	if p.GitHub != "" {
		return p.askGitHub(ctx, c.Client(ctx, token))
	}
	text, ok := token.Extra("id_token").(string)
	if !ok {
		return Identity{}, errors.New("the provider sent no ID token")
	}
	found := p.found.Load()
	// The keys are read for each login, so that one which the provider has withdrawn counts no more.
	id, err := found.VerifierContext(ctx, &oidc.Config{ClientID: p.ClientID}).Verify(ctx, text)
	if err != nil {
		return Identity{}, fmt.Errorf("verify ID token: %w", err)
	}
	if id.Nonce == "" || !equal(id.Nonce, a.Nonce) {
		return Identity{}, errors.New("verify ID token: it was made for another login")
	}
	claims := map[string]any{}
	if err := id.Claims(&claims); err != nil {
		return Identity{}, fmt.Errorf("read ID token: %w", err)
	}
	if claims["email"] == nil && found.UserInfoEndpoint() != "" { // some send only the subject in the token
		info, err := found.UserInfo(ctx, oauth2.StaticTokenSource(token))
		if err != nil {
			return Identity{}, fmt.Errorf("read user info: %w", away(err))
		}
		if info.Subject != id.Subject {
			return Identity{}, errors.New("read user info: it is about someone else")
		}
		if err := info.Claims(&claims); err != nil {
			return Identity{}, fmt.Errorf("read user info: %w", err)
		}
	}
	return p.identity(id.Subject, claims)
}

// away marks an error as errAway if the provider did not answer in time, or with its own failure.
func away(err error) error {
	_, unreached := errors.AsType[*url.Error](err)
	silent := unreached || errors.Is(err, context.DeadlineExceeded) // go-github returns this one as it is
	refused, _ := errors.AsType[*oauth2.RetrieveError](err)
	failed, _ := errors.AsType[*github.ErrorResponse](err)
	if silent || refused != nil && refused.Response.StatusCode >= http.StatusInternalServerError ||
		failed != nil && failed.Response.StatusCode >= http.StatusInternalServerError {
		return fmt.Errorf("%w: %w", errAway, err)
	}
	return err
}

// accountForm matches the names of people's accounts at GitHub.
var accountForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$`)

// identity reads the claims of a person. A name that they may choose themselves is not used: grants go by it. A person
// whose account cannot be read is not let in, because without an account fewer limits would apply to them.
func (p *Provider) identity(subject string, claims map[string]any) (Identity, error) {
	id := Identity{Name: p.name() + "/" + subject}
	if verified := claims["email_verified"]; verified == true || verified == "true" {
		if id.Email, _ = claims["email"].(string); id.Email != "" {
			id.Name = id.Email
		}
	}
	switch groups := claims[p.Groups].(type) {
	case string:
		id.Groups = []string{groups}
	case []any:
		for _, g := range groups {
			if name, ok := g.(string); ok {
				id.Groups = append(id.Groups, name)
			}
		}
	}
	switch account := claims[p.Account].(type) {
	case nil:
	case string:
		if account != "" && !accountForm.MatchString(account) {
			return Identity{}, fmt.Errorf("read claim %s: %.100q is not an account at GitHub", p.Account, account)
		}
		id.Login = account
	default:
		return Identity{}, fmt.Errorf("read claim %s: it is not text", p.Account)
	}
	return id, nil
}

// askGitHub reads a person's account, verified e-mail, organisations and teams.
func (p *Provider) askGitHub(ctx context.Context, client *http.Client) (id Identity, err error) {
	api := github.NewClient(client)
	if api.BaseURL, err = url.Parse(p.GitHub); err != nil {
		return id, err
	}
	user, _, err := api.Users.Get(ctx, "")
	if err != nil {
		return id, fmt.Errorf("read account: %w", away(err))
	}
	if user.GetLogin() == "" {
		return id, errors.New("GitHub names no account")
	}
	// With the provider, because an account may be called console, as the holder of the console token is.
	id.Name, id.Login, id.ID = p.name()+"/"+user.GetLogin(), user.GetLogin(), user.GetID()
	emails, err := pages(ctx, "e-mail addresses", api.Users.ListEmails)
	if err != nil {
		return id, err
	}
	for _, e := range emails {
		if e.GetPrimary() && e.GetVerified() {
			id.Name, id.Email = e.GetEmail(), e.GetEmail()
		}
	}
	orgs, err := pages(ctx, "organisations",
		func(ctx context.Context, o *github.ListOptions) ([]*github.Organization, *github.Response, error) {
			return api.Organizations.List(ctx, "", o)
		})
	if err != nil {
		return id, err
	}
	for _, org := range orgs {
		id.Groups = append(id.Groups, org.GetLogin())
	}
	teams, err := pages(ctx, "teams", api.Teams.ListUserTeams)
	for _, team := range teams {
		id.Groups = append(id.Groups, team.GetOrganization().GetLogin()+"/"+team.GetSlug())
	}
	return id, err
}

// maxPages bounds what is read of a list.
const maxPages = 10

// pages reads the pages of a list.
func pages[T any](
	ctx context.Context, what string, list func(context.Context, *github.ListOptions) ([]T, *github.Response, error),
) (all []T, err error) {
	o := &github.ListOptions{PerPage: 100} // GitHub's largest page
	for range maxPages {
		some, resp, err := list(ctx, o)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", what, away(err))
		}
		all, o.Page = append(all, some...), resp.NextPage
		if o.Page == 0 {
			break
		}
	}
	return all, nil
}
