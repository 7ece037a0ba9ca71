package assemble

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/errand-fleet/errand/config"
	"github.com/errand-fleet/errand/forge"
	"github.com/errand-fleet/errand/internal/doctor"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/web/auth"
)

// taskLinks signs the links to tasks. It returns nil where people can log in, where links are switched off, and where
// the fleet has no secret to sign with. Workers, which post the links, need not know about the proxy of front doors:
// these ignore signatures then.
func taskLinks(c config.Config) *auth.Links {
	token := c.FleetToken().Reveal()
	if token == "" || c.HTTP.LinkDays == 0 || c.Routing.Login.Issuer != "" || c.HTTP.ProxyHeader != "" {
		return nil
	}
	mac := hmac.New(sha256.New, []byte(token))
	_, _ = mac.Write([]byte("errand task links")) // a hash never fails
	return &auth.Links{Key: mac.Sum(nil), Days: c.HTTP.LinkDays}
}

// provider returns where people log in; nil: nowhere.
func provider(c config.Config) *auth.Provider {
	l := c.Routing.Login
	if l.Issuer == "" {
		return nil
	}
	p := &auth.Provider{
		Issuer: l.Issuer, ClientID: l.ClientID, Secret: c.HTTP.LoginSecret.Reveal(),
		Redirect: c.HTTP.PublicURL + "/login/callback", Scopes: l.Scopes, Groups: cmp.Or(l.Groups, "groups"),
		Account: l.Account, HTTP: &http.Client{Timeout: 10 * time.Second},
	}
	if site := strings.TrimRight(l.Issuer, "/"); strings.EqualFold(site, c.GitHub.URL) {
		p.Issuer, p.GitHub = site, c.GitHub.APIURL
	}
	return p
}

// linkURL returns where people in Slack link their account to one on GitHub; "" if they cannot.
func linkURL(c config.Config) string {
	if !c.LinksAccounts() || c.HTTP.PublicURL == "" {
		return ""
	}
	return strings.TrimRight(c.HTTP.PublicURL, "/") + auth.LinkPath
}

// access returns what people may do at the console.
func (p *Parts) access() (*auth.Access, error) {
	a := &auth.Access{People: p.policy.People}
	for _, g := range p.Config.Routing.Roles {
		grant := auth.Grant{People: g.People, Groups: g.Groups, Repositories: g.Repositories}
		if err := grant.Role.UnmarshalText([]byte(g.Role)); err != nil {
			return nil, fmt.Errorf("read roles: %w", err) // config has checked them
		}
		a.Grants = append(a.Grants, grant)
	}
	if p.Forge != nil {
		a.Forge = func(ctx context.Context, repo, login string) (bool, error) {
			permission, err := p.Forge.Permission(ctx, repo, login)
			if errors.Is(err, forge.ErrNotFound) {
				return false, nil
			}
			return err == nil && permission != forge.PermissionNone && permission != "", err
		}
	}
	return a, nil
}

// askedAtOnce is for about how many repositories a forge gets requests at the same time.
const askedAtOnce = 8

// diagnoseRepositories names the repositories of errand.yaml that the forge does not know, or by another name.
func (p *Parts) diagnoseRepositories(ctx context.Context) []doctor.Finding {
	if p.Forge == nil {
		return nil
	}
	var unknown []string
	for some := range slices.Chunk(p.policy.Listed, askedAtOnce) {
		names, errs := make([]string, len(some)), make([]error, len(some))
		var all sync.WaitGroup
		for i, repo := range some {
			all.Go(func() { names[i], errs[i] = p.Forge.NameOf(ctx, repo) })
		}
		all.Wait()
		for i, repo := range some {
			if errors.Is(errs[i], forge.ErrNotFound) {
				unknown = append(unknown, repo)
			} else if errs[i] == nil && !strings.EqualFold(names[i], repo) {
				unknown = append(unknown, repo+" (now "+names[i]+")")
			}
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	return []doctor.Finding{{
		What: "GitHub does not know repositories of errand.yaml: " + strings.Join(unknown, ", "),
		Why: "They were deleted or renamed, or errand has no access. Their events or tasks are refused, and people " +
			"whose rights are limited run no commands on workers without a sandbox.",
		Remedy: "Correct their names under repositories: or remove them, or give errand access.",
	}}
}

// rightsNotice reports that people in Slack are not limited to their own rights on GitHub.
func rightsNotice(c config.Config) []store.Finding {
	if !c.Slack.Enabled() || !c.GitHub.Enabled() || c.Routing.Slack.Unmapped != "" ||
		c.Routing.Unmapped() != "all" {
		return nil
	}
	return []store.Finding{{
		Severity: store.Note, What: "everybody in Slack has errand's rights on GitHub",
		Why: "errand.yaml maps no person to a GitHub account, so people can use errand to read and change " +
			"repositories that they have no access to.",
		Remedy: "Add them under `people:` with `slack:` and `github:`, or decide with `slack: unmapped:`.",
	}}
}
