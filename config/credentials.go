package config

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/errand-fleet/errand/internal/pattern"
)

// Credential is one of several credentials for the model, the preferred ones first. One of the values is set, except in
// a cloud; it contains {{env "NAME"}} for a secret, which is read when the agent's runner is created.
type Credential struct {
	Name         string `yaml:"name" help:"The name in logs."`
	APIKey       string `yaml:"api_key" hidden:"all" help:"An API key as {{env \"NAME\"}}."`
	OAuthToken   string `yaml:"oauth_token" hidden:"all" help:"Instead, the token of a Claude subscription."`
	AuthToken    string `yaml:"auth_token" hidden:"all" help:"Instead, a bearer token for a gateway."`
	TokenCommand string `yaml:"token_command" hidden:"all" help:"Instead, a program that prints such a token."`
	Provider     string `yaml:"provider" default:"anthropic" help:"A cloud instead of Anthropic's API: bedrock, vertex or foundry."`
	Region       string `yaml:"region" help:"Of Bedrock and Vertex AI."`
	Profile      string `yaml:"profile" default:"the worker's credentials" help:"Of Bedrock: the profile in AWS' own files."`
	Project      string `yaml:"project" help:"Of Vertex AI."`
	File         string `yaml:"file" default:"Google's default" help:"Of Vertex AI: the file with a credential."`
	Resource     string `yaml:"resource" help:"Of Foundry."`

	Models       map[string]string `yaml:"models" help:"What the provider calls opus, sonnet and haiku."`
	Repositories []string          `yaml:"repositories" default:"all" help:"Patterns of owner/name whose runs may use it."`
	People       []string          `yaml:"people" default:"all" help:"Names in people: whose runs may use it."`
	Pools        []string          `yaml:"pools" default:"all" help:"Pools whose workers use it."`
}

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
		v.credential(c, at)
		v.patterns(c.Repositories, append(at, "repositories"))
		for _, name := range c.People {
			if _, known := r.People[name]; !known {
				v.add(fmt.Sprintf("has %q, who is not among the people", name), "write a name that people: has",
					append(at, "people")...)
			}
		}
	}
}

// fields are the keys of a credential that only some providers have, and those that each of them needs.
func (c Credential) fields() (values map[string]string, may, must []string) {
	values = map[string]string{
		"api_key": c.APIKey, "oauth_token": c.OAuthToken, "auth_token": c.AuthToken, "token_command": c.TokenCommand,
		"region": c.Region, "profile": c.Profile, "project": c.Project, "file": c.File, "resource": c.Resource,
	}
	switch c.Provider {
	case ProviderBedrock:
		return values, []string{"api_key", "region", "profile"}, nil
	case ProviderVertex:
		return values, []string{"region", "project", "file"}, []string{"region", "project"}
	case ProviderFoundry:
		return values, []string{"api_key", "resource"}, nil
	}
	return values, []string{"api_key", "oauth_token", "auth_token", "token_command"}, nil
}

// credential checks what a credential consists of.
func (v routingCheck) credential(c Credential, at []string) {
	if c.Provider != "" && !slices.Contains([]string{ProviderBedrock, ProviderVertex, ProviderFoundry}, c.Provider) {
		v.add("must be bedrock, vertex or foundry", "leave it out for Anthropic's API, and for gateways like it",
			append(at, "provider")...)
		return
	}
	values, may, must := c.fields()
	secrets := 0
	for _, key := range slices.Sorted(maps.Keys(values)) {
		secret := slices.Contains([]string{"api_key", "oauth_token", "auth_token"}, key)
		switch set := values[key] != ""; {
		case !set && slices.Contains(must, key):
			v.add("has no "+key, "write one", at...)
		case set && !slices.Contains(may, key):
			v.add("is not for this provider", "the keys here are "+strings.Join(may, ", "), append(at, key)...)
		case set && secret && !strings.Contains(values[key], "{{"):
			v.add(inPlain, inPlainRemedy, append(at, key)...)
		}
		if values[key] != "" && (secret || key == "token_command") {
			secrets++
		}
	}
	if c.Provider == "" && secrets != 1 {
		v.add("has no value, or several", "write one of api_key, oauth_token, auth_token and token_command", at...)
	}
	if c.File != "" && !filepath.IsAbs(c.File) {
		v.add("is not an absolute path", "", append(at, "file")...)
	}
	if c.APIKey != "" && c.Profile != "" {
		v.add("has an API key and a profile", "remove one of them", at...)
	}
	for name := range c.Models {
		if !slices.Contains([]string{"opus", "sonnet", "haiku"}, name) {
			v.add("has "+name, "write opus, sonnet and haiku", append(at, "models")...)
		}
	}
}

// checkCredentials refuses a credential in the environment beside those of errand.yaml, and repositories without one.
func (c *Config) checkCredentials(p *Problems) {
	const remedy = "unset it, or remove the section credentials"
	for _, s := range c.settings() {
		switch s.name {
		case "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "ERRAND_MODEL_TOKEN_COMMAND",
			"AWS_BEARER_TOKEN_BEDROCK", "ANTHROPIC_FOUNDRY_API_KEY", c.Cloud.Used():
			if !s.field.IsZero() {
				p.add(s.name, "conflicts with the section credentials in "+c.Paths.File, remedy)
			}
		}
	}
	if c.Model.Gateway == GatewayOff {
		p.add("ERRAND_GATEWAY", "is off, so nobody would see which of the credentials the model refuses",
			"set it to on, or remove the section credentials")
	}
	resource := ""
	for _, one := range c.CredentialsHere() {
		if one.Provider == ProviderFoundry && one.Resource+c.Cloud.FoundryURL == "" {
			*p = append(*p, c.Problem("has no resource", "write one, or set ANTHROPIC_FOUNDRY_BASE_URL",
				c.CredentialPath(one.Name)...))
		}
		if resource = cmp.Or(resource, one.Resource); one.Resource != "" && one.Resource != resource &&
			c.Cloud.FoundryURL != "" {
			*p = append(*p, c.Problem("has another resource than one before it, but a base URL is for all",
				"unset ANTHROPIC_FOUNDRY_BASE_URL, or remove the resources", c.CredentialPath(one.Name)...))
		}
	}
	if len(c.CredentialsHere()) == 0 {
		p.add("ERRAND_POOL", "is "+c.Worker.Pool+", a pool that may use none of the credentials in "+c.Paths.File,
			"add it to the pools of one of the credentials")
	}
	for _, name := range slices.Sorted(maps.Keys(c.Routing.Repositories)) {
		if !slices.ContainsFunc(c.Routing.Credentials, func(one Credential) bool {
			return pattern.Covers(one.Repositories, name)
		}) {
			*p = append(*p, c.Problem("has no credential for the model",
				"add it to the repositories of one of the credentials", "repositories", name))
		}
	}
}

// CredentialPath returns the path of a credential of errand.yaml, for [Config.Problem].
func (c *Config) CredentialPath(name string) []string {
	i := slices.IndexFunc(c.Routing.Credentials, func(one Credential) bool { return one.Name == name })
	return []string{"credentials", strconv.Itoa(i + 1)}
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
