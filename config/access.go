package config

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/errand-fleet/errand/tasks/policy"
)

// Login configures the login of people to the console by OpenID Connect, or by GitHub's OAuth if Issuer is the GitHub
// that errand works with. The zero value is no login.
type Login struct {
	Issuer   string   `yaml:"issuer" help:"The URL of the OpenID provider, or https://github.com."`
	ClientID string   `yaml:"client_id" help:"The client's ID there."`
	Scopes   []string `yaml:"scopes" help:"Scopes in addition to openid, profile and email."`
	Groups   string   `yaml:"groups" default:"groups" help:"The claim with a person's groups. Only the provider's operator may be able to set it."`
	Account  string   `yaml:"account" help:"The claim with their account at GitHub, whose rights they then have. Only the provider's operator may be able to set it."`
}

// Grant gives a role at the console to people and groups.
type Grant struct {
	Role         string   `yaml:"role" help:"The role: viewer, user, operator or admin."`
	People       []string `yaml:"people" help:"Patterns of verified e-mail addresses, names of a proxy and accounts at GitHub."`
	Groups       []string `yaml:"groups" help:"Groups of the login or proxy. GitHub: organisations and teams."`
	Repositories []string `yaml:"repositories" default:"all" help:"Patterns of owner/name where it holds."`
}

// roles are the values of Grant.Role.
var roles = []string{"viewer", "user", "operator", "admin"}

func (v routingCheck) login(r Routing) {
	l := r.Login
	if l.Issuer == "" && l.ClientID == "" {
		return
	}
	u, err := url.Parse(l.Issuer)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Hostname() != "127.0.0.1" || u.User != nil ||
		u.RawQuery != "" {
		v.add("is not the https URL of an OpenID provider",
			"write it as the provider does, like https://id.example.com, or https://github.com for GitHub",
			"login", "issuer")
	}
	if l.ClientID == "" {
		v.add("has no client_id", "register errand at the provider and add the client's ID", "login")
	}
	if len(r.Roles) == 0 {
		v.add("lets people log in who have no role", "add a section roles", "login")
	}
}

func (v routingCheck) roles(r Routing) {
	for i, g := range r.Roles {
		at := []string{"roles", strconv.Itoa(i + 1)}
		if !slices.Contains(roles, g.Role) {
			v.add(fmt.Sprintf("must be %s, not %q", strings.Join(roles, ", "), g.Role), "", append(at, "role")...)
		}
		if len(g.People)+len(g.Groups) == 0 {
			v.add("is for no one", `add people, like ["*@example.com"], or groups`, at...)
		}
		if g.Role == "admin" && len(g.Repositories) > 0 {
			v.add("limits admins to repositories, but tokens and the audit log belong to all",
				"remove repositories, or choose operator", at...)
		}
		v.patterns(slices.Concat(g.People, g.Repositories), at)
	}
}

// checkLogin reports what the login of people needs besides errand.yaml.
func (c *Config) checkLogin(p *Problems, role Role) {
	if c.Routing.Login.Issuer == "" || role == RoleWorker {
		return
	}
	const why = "is not set although errand.yaml has a login"
	if c.HTTP.LoginSecret == "" {
		p.add("ERRAND_LOGIN_SECRET", why, "set it to the client's secret at the provider")
	}
	if c.HTTP.PublicURL == "" && !p.Has("ERRAND_PUBLIC_URL") {
		p.add("ERRAND_PUBLIC_URL", why, "set it to the URL of the console; people return to /login/callback there")
	}
}

// LinksAccounts reports whether people can link their accounts in Slack to their accounts on GitHub.
func (c *Config) LinksAccounts() bool {
	issuer := strings.TrimRight(c.Routing.Login.Issuer, "/")
	return c.Routing.Slack.Link && c.GitHub.Enabled() && issuer != "" && strings.EqualFold(issuer, c.GitHub.URL)
}

// checkRights refuses limits for people in Slack that cannot be checked.
func (c *Config) checkRights(p *Problems) {
	if u := c.Routing.Slack.Unmapped; u != "" && u != policy.UnmappedAll && !c.GitHub.Enabled() {
		*p = append(*p, c.Problem("limits people by their rights on GitHub, which is not configured",
			"set GITHUB_APP_ID or GITHUB_TOKEN (docs/connect.md), or remove it", "slack", "unmapped"))
	}
	if c.Routing.Slack.Link && !c.LinksAccounts() {
		*p = append(*p, c.Problem("lets people prove their account by a login at GitHub, which is not configured",
			"set login: with GitHub as the issuer, GITHUB_APP_ID or GITHUB_TOKEN, and ERRAND_PUBLIC_URL "+
				"(docs/slack.md), or remove it", "slack", "link"))
	}
}
