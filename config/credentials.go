package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/errand-fleet/errand/internal/pattern"
)

// Credential is one of several credentials for the model, the preferred ones first. One of the values is set; it contains
// {{env "NAME"}} for a secret, which is read when the agent's runner is created.
type Credential struct {
	Name         string   `yaml:"name"`
	APIKey       string   `yaml:"api_key"`
	OAuthToken   string   `yaml:"oauth_token"`  // of a Claude subscription
	AuthToken    string   `yaml:"auth_token"`   // a bearer token, as gateways expect it
	Weight       float64  `yaml:"weight"`       // its share of the runs; 0 = 1
	Repositories []string `yaml:"repositories"` // patterns of owner/name whose runs may use it; empty = all
	People       []string `yaml:"people"`       // names in people: whose runs may use it; empty = all
	Pools        []string `yaml:"pools"`        // whose workers use it; empty = all
	DailyCap     float64  `yaml:"daily_cap"`    // most US dollars a day (UTC); 0 = no cap
}

// Kind describes the kind of the credential.
func (c Credential) Kind() string {
	switch {
	case c.APIKey != "":
		return "API key"
	case c.OAuthToken != "":
		return "subscription"
	}
	return "bearer token"
}

// maxWeight bounds Credential.Weight.
const maxWeight = 1000

func (v routingCheck) credentials(r Routing) {
	seen := map[string]bool{}
	for i, c := range r.Credentials {
		at := []string{"credentials", strconv.Itoa(i + 1)}
		if !serverName.MatchString(c.Name) {
			v.add("has no name of lower-case letters, digits and dashes", "add `name: team-a`; logs show it", at...)
		}
		if seen[c.Name] {
			v.add("has the name of another one", "give each credential its own", at...)
		}
		seen[c.Name] = true
		values := 0
		for key, value := range map[string]string{"api_key": c.APIKey, "oauth_token": c.OAuthToken, "auth_token": c.AuthToken} {
			if value == "" {
				continue
			}
			if values++; !strings.Contains(value, "{{") {
				v.add(inPlain, inPlainRemedy, append(at, key)...)
			}
		}
		if values != 1 {
			v.add("has no value, or several", "write one of api_key, oauth_token and auth_token", at...)
		}
		if !(c.Weight >= 0 && c.Weight <= maxWeight) { // written so that it also holds for .nan
			v.add(fmt.Sprintf("must be a number above 0, at most %d", maxWeight), "", append(at, "weight")...)
		}
		if !(c.DailyCap >= 0 && c.DailyCap <= maxBudget) {
			v.add("is not an amount", "write US dollars, like 20 or 2.5, or 0 for no cap", append(at, "daily_cap")...)
		}
		v.patterns(c.Repositories, append(at, "repositories"))
		for _, name := range c.People {
			if _, known := r.People[name]; !known {
				v.add(fmt.Sprintf("has %q, who is not among the people", name), "write a name that people: has", append(at, "people")...)
			}
		}
	}
}

// checkCredentials refuses another way to the model beside the credentials of errand.yaml, and repositories without one.
func (c *Config) checkCredentials(p *Problems) {
	const remedy = "unset it, or remove the section credentials"
	for _, s := range c.settings() {
		switch s.name {
		case "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "ERRAND_MODEL_TOKEN_COMMAND", c.Cloud.Used():
			if !s.field.IsZero() {
				p.add(s.name, "is set beside the credentials in "+c.Paths.File, remedy)
			}
		}
	}
	if c.Model.Gateway == GatewayOff {
		p.add("ERRAND_GATEWAY", "is off, so runs could not change their credential", "set it to on, or remove the section credentials")
	}
	if len(c.CredentialsHere()) == 0 {
		p.add("ERRAND_POOL", "is "+c.Worker.Pool+", a pool that may use none of the credentials in "+c.Paths.File, "add it to the pools of one of the credentials")
	}
	for _, name := range slices.Sorted(maps.Keys(c.Routing.Repositories)) {
		if !slices.ContainsFunc(c.Routing.Credentials, func(one Credential) bool { return pattern.Covers(one.Repositories, name) }) {
			p.add(c.Paths.File+": repositories."+name, "has no credential for the model", "add it to the repositories of one of the credentials")
		}
	}
}

// CredentialsHere returns the credentials that workers of this process's pool use.
func (c *Config) CredentialsHere() (list []Credential) {
	for _, one := range c.Routing.Credentials {
		if len(one.Pools) == 0 || slices.Contains(one.Pools, c.Worker.Pool) {
			list = append(list, one)
		}
	}
	return list
}
