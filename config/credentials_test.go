package config

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const credentialsYAML = `
repositories: {acme/api: {}, acme/web: {}}
credentials:
  - name: team-a
    api_key: '{{env "TEAM_A_KEY"}}'
    repositories: ["Acme/*"]
  - {name: plan, oauth_token: '{{env "PLAN"}}'}
  - {name: old, auth_token: '{{env "OLD"}}'}
  - {name: vault, token_command: vault read}
  - {name: aws, provider: bedrock, profile: prod, models: {sonnet: eu.sonnet}}
  - {name: gcp, provider: vertex, project: p, region: eu, file: /g.json}
  - {name: azure, provider: foundry, resource: acme, api_key: '{{env "OLD"}}'}
`

func TestCredentials(t *testing.T) {
	t.Parallel()
	vars := map[string]string{
		"REDIS_URL": "redis://:p@h:6379", "ERRAND_CONFIG": "/etc/errand.yaml", "TEAM_A_KEY": "hush-a",
		"PLAN": "hush-plan", "OLD": "hush-old",
	}
	c, err := load(getenv(vars), machine(t, map[string]string{"/etc/errand.yaml": credentialsYAML}), RoleWorker)
	if err != nil {
		t.Fatal(err)
	}
	want := []Credential{
		{Name: "team-a", APIKey: `{{env "TEAM_A_KEY"}}`, Repositories: []string{"Acme/*"}},
		{Name: "plan", OAuthToken: `{{env "PLAN"}}`},
		{Name: "old", AuthToken: `{{env "OLD"}}`},
		{Name: "vault", TokenCommand: "vault read"},
		{Name: "aws", Provider: "bedrock", Profile: "prod", Models: map[string]string{"sonnet": "eu.sonnet"}},
		{Name: "gcp", Provider: "vertex", Project: "p", Region: "eu", File: "/g.json"},
		{Name: "azure", Provider: "foundry", Resource: "acme", APIKey: `{{env "OLD"}}`},
	}
	if diff := cmp.Diff(want, c.Routing.Credentials); diff != "" {
		t.Errorf("credentials (-want +got):\n%s", diff)
	}
	var printed bytes.Buffer
	if err := c.Print(&printed); err != nil || leaks(printed.String()) ||
		!strings.Contains(printed.String(), "credentials (7)") {
		t.Errorf("%v, printed:\n%s", err, &printed)
	}
	for way, text := range everyWay(t, c) {
		if leaks(text) {
			t.Errorf("%s shows a secret: %s", way, text)
		}
	}
}

func TestCredentialProblems(t *testing.T) {
	t.Parallel()
	const name = `- name: a
    `
	for _, tc := range []struct{ text, want string }{
		{
			`- {api_key: '{{env "K"}}'}`,
			"f:2: credentials.1 has no name of lower-case letters, digits and dashes; add `name: team-a`; logs show it",
		},
		{
			`- {name: A, api_key: '{{env "K"}}'}`,
			"f:2: credentials.1 has no name of lower-case letters, digits and dashes; add `name: team-a`; logs show it",
		},
		{`- {name: a, api_key: '{{env "K"}}'}
  - {name: a, api_key: '{{env "L"}}'}`, "f:3: credentials.2 has the name of another one; give each credential its own"},
		{
			name + "pools: [x]",
			"f:2: credentials.1 has no value, or several; write one of api_key, oauth_token, auth_token and token_command",
		},
		{
			`- {name: a, api_key: '{{env "K"}}', auth_token: '{{env "K"}}'}`,
			"f:2: credentials.1 has no value, or several; write one of api_key, oauth_token, auth_token and token_command",
		},
		{
			name + "oauth_token: hush",
			`f:3: credentials.1.oauth_token holds a credential; put it into the environment as NAME and write {{env "NAME"}} in its place`,
		},
		{
			name + `api_key: '{{env "K"}}'
    repositories: ["["]`,
			`f:4: credentials.1.repositories has "[", which is not a pattern; write a name, or * for any part of it`,
		},
		{name + `api_key: '{{env "K"}}'
    daily_cap: 9`, `f:4: knows no key "daily_cap"; remove it; set the limit at the provider, or budgets: day:`},
		{name + `api_key: '{{env "K"}}'
    people: [eve]`, `f:4: credentials.1.people has "eve", who is not among the people; write a name that people: has`},
		{
			name + "provider: aws",
			"f:3: credentials.1.provider must be bedrock, vertex or foundry; leave it out for Anthropic's API, and for gateways like it",
		},
		{name + `provider: bedrock
    project: p`, "f:4: credentials.1.project is not for this provider; the keys here are api_key, region, profile"},
		{name + `provider: bedrock
    profile: p
    api_key: '{{env "K"}}'`, "f:2: credentials.1 has an API key and a profile; remove one of them"},
		{
			name + `provider: foundry
    api_key: hush`,
			`f:4: credentials.1.api_key holds a credential; put it into the environment as NAME and write {{env "NAME"}} in its place`,
		},
		{name + `provider: vertex
    project: p`, "f:2: credentials.1 has no region; write one"},
		{name + `provider: vertex
    project: p
    region: eu
    file: g.json`, "f:6: credentials.1.file is not an absolute path"},
		{
			name + `region: eu
    token_command: vault`,
			"f:3: credentials.1.region is not for this provider; the keys here are api_key, oauth_token, auth_token, token_command",
		},
		{name + `token_command: vault
    models: {gpt: x}`, "f:4: credentials.1.models has gpt; write opus, sonnet and haiku"},
		{
			name + `key: '{{env "K"}}'`,
			`f:3: knows no key "key"; remove it or correct its spelling; the keys here are name, api_key, oauth_token, auth_token, token_command, provider, region, profile, project, file, resource, models, repositories, people, pools` + "\n" +
				"f:2: credentials.1 has no value, or several; write one of api_key, oauth_token, auth_token and token_command",
		},
		{"a: {api_key: hush}", "f:2: credentials does not have the right form; write a list, each entry after a dash"},
	} {
		t.Run(tc.text, func(t *testing.T) {
			t.Parallel()
			var p Problems
			parseRouting(&p, "f", []byte("credentials:\n  "+tc.text))
			var got []string
			for _, problem := range p {
				got = append(got, problem.String())
			}
			if diff := cmp.Diff(tc.want, strings.Join(got, "\n")); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

// The credentials of errand.yaml are the only way to the model, and each repository has one.
func TestCredentialsBesideOthers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		role        Role
		name, value string
		want        string // the only problem; empty: none
	}{
		{
			RoleWorker, "ANTHROPIC_API_KEY", "k",
			"ANTHROPIC_API_KEY conflicts with the section credentials in /etc/errand.yaml; unset it, or remove the section credentials",
		},
		{
			RoleStandalone, "ANTHROPIC_AUTH_TOKEN", "k",
			"ANTHROPIC_AUTH_TOKEN conflicts with the section credentials in /etc/errand.yaml; unset it, or remove the section credentials",
		},
		{
			RoleWorker, "CLAUDE_CODE_OAUTH_TOKEN", "k",
			"CLAUDE_CODE_OAUTH_TOKEN conflicts with the section credentials in /etc/errand.yaml; unset it, or remove the section credentials",
		},
		{
			RoleWorker, "ERRAND_MODEL_TOKEN_COMMAND", "k",
			"ERRAND_MODEL_TOKEN_COMMAND conflicts with the section credentials in /etc/errand.yaml; unset it, or remove the section credentials",
		},
		{
			RoleWorker, "CLAUDE_CODE_USE_BEDROCK", "1",
			"CLAUDE_CODE_USE_BEDROCK conflicts with the section credentials in /etc/errand.yaml; unset it, or remove the section credentials",
		},
		{
			RoleWorker, "AWS_BEARER_TOKEN_BEDROCK", "k",
			"AWS_BEARER_TOKEN_BEDROCK conflicts with the section credentials in /etc/errand.yaml; unset it, or remove the section credentials",
		},
		{
			RoleWorker, "", "credentials: [{name: a, provider: foundry}]",
			"/etc/errand.yaml:1: credentials.1 has no resource; write one, or set ANTHROPIC_FOUNDRY_BASE_URL",
		},
		{
			RoleWorker, "ERRAND_GATEWAY", "off",
			"ERRAND_GATEWAY is off, so nobody would see which of the credentials the model refuses; set it to on, or remove the section credentials",
		},
		{
			RoleWorker, "",
			"repositories: {acme/api: {}, acme/web: {}}\ncredentials: [{name: a, api_key: '{{env \"K\"}}', repositories: [acme/api]}]", "/etc/errand.yaml:1: repositories.acme/web has no credential for the model; add it to the repositories of one of the credentials",
		},
		{
			RoleWorker, "", "credentials: [{name: a, api_key: '{{env \"K\"}}', pools: [gpu]}]",
			"ERRAND_POOL is default, a pool that may use none of the credentials in /etc/errand.yaml; add it to the pools of one of the credentials",
		},
		{RoleFrontdoor, "", "credentials: [{name: a, api_key: '{{env \"K\"}}', pools: [gpu]}]", ""},
		{
			RoleWorker, "",
			"credentials: [{name: a, api_key: '{{env \"K\"}}', pools: [gpu]}, {name: b, api_key: '{{env \"K\"}}', pools: [default]}]", "",
		},
		{RoleWorker, "ANTHROPIC_BASE_URL", "https://gateway.example", ""},
		{RoleFrontdoor, "ANTHROPIC_API_KEY", "k", ""},
	} {
		t.Run(tc.name+" "+string(tc.role), func(t *testing.T) {
			t.Parallel()
			vars := map[string]string{
				"REDIS_URL": "redis://:p@h:6379", "ERRAND_CONFIG": "/etc/errand.yaml",
				"ERRAND_CONSOLE_TOKEN": "console-token-0123",
			}
			text := credentialsYAML
			if tc.name == "" {
				text = tc.value
			}
			vars[tc.name] = tc.value
			_, err := load(getenv(vars), machine(t, map[string]string{"/etc/errand.yaml": text}), tc.role)
			got := ""
			if err != nil {
				got = strings.TrimPrefix(err.Error(), "configuration: 1 problem\n  - ")
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

// A base URL would send the requests of all resources to one address.
func TestResourcesBesideABaseURL(t *testing.T) {
	t.Parallel()
	const text = "credentials: [{name: one, provider: foundry, resource: a}, {name: again, provider: foundry, resource: a}, {name: two, provider: foundry, resource: b}]"
	for _, name := range []string{"ANTHROPIC_FOUNDRY_BASE_URL", "none"} {
		vars := map[string]string{
			"REDIS_URL": "redis://:p@h:6379", "ERRAND_CONFIG": "/etc/errand.yaml", name: "https://gateway.example",
		}
		_, err := load(getenv(vars), machine(t, map[string]string{"/etc/errand.yaml": text}), RoleWorker)
		if refused := err != nil &&
			strings.HasPrefix(err.Error(),
				"configuration: 1 problem\n  - /etc/errand.yaml:1: credentials.3 has another resource"); refused == (name == "none") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
