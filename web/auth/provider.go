package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
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

	mu    sync.Mutex
	found *oidc.Provider // the issuer's description, once it has answered
}

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
		c.Endpoint = oauth2.Endpoint{AuthURL: p.Issuer + "/login/oauth/authorize", TokenURL: p.Issuer + "/login/oauth/access_token"}
		c.Scopes = []string{"read:user", "user:email", "read:org"}
		return ctx, c, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.found == nil {
		found, err := oidc.NewProvider(ctx, p.Issuer)
		if err != nil {
			return ctx, nil, fmt.Errorf("discover OpenID provider: %w", err)
		}
		p.found = found
	}
	c.Endpoint, c.Scopes = p.found.Endpoint(), append([]string{oidc.ScopeOpenID, "profile", "email"}, p.Scopes...)
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
		return Identity{}, fmt.Errorf("exchange code: %w", err)
	}
	if p.GitHub != "" {
		return p.askGitHub(ctx, c.Client(ctx, token))
	}
	text, ok := token.Extra("id_token").(string)
	if !ok {
		return Identity{}, errors.New("the provider sent no ID token")
	}
	id, err := p.found.VerifierContext(ctx, &oidc.Config{ClientID: p.ClientID}).Verify(ctx, text)
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
	if claims["email"] == nil && p.found.UserInfoEndpoint() != "" { // some send only the subject in the token
		info, err := p.found.UserInfo(ctx, oauth2.StaticTokenSource(token))
		if err != nil {
			return Identity{}, fmt.Errorf("read user info: %w", err)
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
	var user struct{ Login string }
	var emails []struct {
		Email             string
		Primary, Verified bool
	}
	var orgs []struct{ Login string }
	var teams []struct {
		Slug         string
		Organization struct{ Login string }
	}
	for path, v := range map[string]any{"user": &user, "user/emails": &emails, "user/orgs": &orgs, "user/teams": &teams} {
		if err := p.get(ctx, client, path+"?per_page=100", v); err != nil {
			return id, err
		}
	}
	if user.Login == "" {
		return id, errors.New("GitHub names no account")
	}
	id.Name, id.Login = user.Login, user.Login
	for _, e := range emails {
		if e.Primary && e.Verified {
			id.Name, id.Email = e.Email, e.Email
		}
	}
	for _, o := range orgs {
		id.Groups = append(id.Groups, o.Login)
	}
	for _, t := range teams {
		id.Groups = append(id.Groups, t.Organization.Login+"/"+t.Slug)
	}
	return id, nil
}

// maxReply bounds a response of GitHub, in bytes.
const maxReply = 4 << 20

func (p *Provider) get(ctx context.Context, client *http.Client, path string, v any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.GitHub+path, nil)
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	req.Header.Set("Accept", "application/vnd.github+json")
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("read %s: GitHub answers %s", strings.TrimSuffix(path, "?per_page=100"), resp.Status)
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxReply)).Decode(v); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}
