package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
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
		c.Endpoint = oauth2.Endpoint{AuthURL: p.Issuer + "/login/oauth/authorize", TokenURL: p.Issuer + "/login/oauth/access_token", AuthStyle: oauth2.AuthStyleInParams}
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
	return p.identity(id.Subject, claims), nil
}

// away marks an error as errAway if the provider did not answer, or with its own failure.
func away(err error) error {
	_, silent := errors.AsType[*url.Error](err)
	refused, ok := errors.AsType[*oauth2.RetrieveError](err)
	if silent || ok && refused.Response.StatusCode >= http.StatusInternalServerError {
		return fmt.Errorf("%w: %w", errAway, err)
	}
	return err
}

// identity reads the claims of a person. A name that they may choose themselves is not used: grants go by it.
func (p *Provider) identity(subject string, claims map[string]any) Identity {
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
	id.Login, _ = claims[p.Account].(string)
	return id
}

// askGitHub reads a person's account, verified e-mail, organisations and teams.
func (p *Provider) askGitHub(ctx context.Context, client *http.Client) (id Identity, err error) {
	var user gitHubItem
	if err := p.get(ctx, client, "user", &user); err != nil {
		return id, err
	}
	if user.Login == "" {
		return id, errors.New("GitHub names no account")
	}
	// With the provider, because an account may be called console, as the holder of the console token is.
	id.Name, id.Login, id.ID = p.name()+"/"+user.Login, user.Login, user.ID
	for _, path := range []string{"user/emails", "user/orgs", "user/teams"} {
		list, err := p.list(ctx, client, path)
		if err != nil {
			return id, err
		}
		for _, item := range list {
			switch {
			case item.Primary && item.Verified:
				id.Name, id.Email = item.Email, item.Email
			case path == "user/orgs":
				id.Groups = append(id.Groups, item.Login)
			case path == "user/teams":
				id.Groups = append(id.Groups, item.Organization.Login+"/"+item.Slug)
			}
		}
	}
	return id, nil
}

// gitHubItem is an account, an e-mail address, an organisation or a team.
type gitHubItem struct {
	Login             string
	ID                int64
	Email             string
	Primary, Verified bool
	Slug              string
	Organization      struct{ Login string }
}

const (
	maxReply = 4 << 20 // bounds a response of GitHub, in bytes
	perPage  = 100     // GitHub's largest page
	maxPages = 10
)

// list reads the pages of a list.
func (p *Provider) list(ctx context.Context, client *http.Client, path string) (all []gitHubItem, err error) {
	for page := 1; page <= maxPages; page++ {
		var some []gitHubItem
		if err := p.get(ctx, client, fmt.Sprintf("%s?per_page=%d&page=%d", path, perPage, page), &some); err != nil {
			return nil, err
		}
		if all = append(all, some...); len(some) < perPage {
			break
		}
	}
	return all, nil
}

func (p *Provider) get(ctx context.Context, client *http.Client, path string, v any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.GitHub+path, nil)
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	req.Header.Set("Accept", "application/vnd.github+json")
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("read %s: %w", path, away(err))
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode >= http.StatusInternalServerError:
		return fmt.Errorf("read %s: %w: GitHub answers %s", path, errAway, resp.Status)
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("read %s: GitHub answers %s", path, resp.Status)
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxReply)).Decode(v); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}
