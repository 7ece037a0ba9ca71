package auth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/errand-fleet/errand/forge/github"
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

// client returns the OAuth client, and a context for its requests. It asks the provider for its addresses when the
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
		a, err := github.ReadAccount(ctx, p.GitHub, c.Client(ctx, token))
		if err != nil {
			return Identity{}, away(err)
		}
		// With the provider, because an account may be called console, as the holder of the console token is.
		name := cmp.Or(a.Email, p.name()+"/"+a.Login)
		return Identity{Name: name, Login: a.Login, ID: a.ID, Email: a.Email, Groups: a.Groups}, nil
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
	if silent || refused != nil && refused.Response.StatusCode >= http.StatusInternalServerError ||
		github.StatusCode(err) >= http.StatusInternalServerError {
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
