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
    weight: 2.5
    repositories: ["Acme/*"]
  - {name: plan, oauth_token: '{{env "PLAN"}}'}
  - {name: old, auth_token: '{{env "OLD"}}'}
`

func TestCredentials(t *testing.T) {
	t.Parallel()
	vars := map[string]string{"REDIS_URL": "redis://:p@h:6379", "ERRAND_CONFIG": "/etc/errand.yaml", "TEAM_A_KEY": "hush-a", "PLAN": "hush-plan", "OLD": "hush-old"}
	c, err := load(getenv(vars), machine(t, map[string]string{"/etc/errand.yaml": credentialsYAML}), RoleWorker)
	if err != nil {
		t.Fatal(err)
	}
	want := []Credential{
		{Name: "team-a", APIKey: `{{env "TEAM_A_KEY"}}`, Weight: 2.5, Repositories: []string{"Acme/*"}},
		{Name: "plan", OAuthToken: `{{env "PLAN"}}`},
		{Name: "old", AuthToken: `{{env "OLD"}}`},
	}
	if diff := cmp.Diff(want, c.Routing.Credentials); diff != "" {
		t.Errorf("credentials (-want +got):\n%s", diff)
	}
	if got := []string{want[0].Kind(), want[1].Kind(), want[2].Kind()}; !cmp.Equal(got, []string{"API key", "subscription", "bearer token"}) {
		t.Errorf("kinds %q", got)
	}
	var printed bytes.Buffer
	if err := c.Print(&printed); err != nil || leaks(printed.String()) || !strings.Contains(printed.String(), "3 credentials for the model") {
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
		{`- {api_key: '{{env "K"}}'}`, "f:2: credentials.1 has no name of lower-case letters, digits and dashes; add `name: team-a`; logs show it"},
		{`- {name: A, api_key: '{{env "K"}}'}`, "f:2: credentials.1 has no name of lower-case letters, digits and dashes; add `name: team-a`; logs show it"},
		{`- {name: a, api_key: '{{env "K"}}'}
  - {name: a, api_key: '{{env "L"}}'}`, "f:3: credentials.2 has the name of another one; give each credential its own"},
		{name + "weight: 1", "f:2: credentials.1 has no value, or several; write one of api_key, oauth_token and auth_token"},
		{`- {name: a, api_key: '{{env "K"}}', auth_token: '{{env "K"}}'}`, "f:2: credentials.1 has no value, or several; write one of api_key, oauth_token and auth_token"},
		{name + "oauth_token: hush", `f:3: credentials.1.oauth_token holds a credential; put it into the environment as NAME and write {{env "NAME"}} in its place`},
		{name + `api_key: '{{env "K"}}'
    weight: -1`, "f:4: credentials.1.weight must be a number above 0, at most 1000"},
		{name + `api_key: '{{env "K"}}'
    weight: .nan`, "f:4: credentials.1.weight must be a number above 0, at most 1000"},
		{name + `api_key: '{{env "K"}}'
    repositories: ["["]`, `f:4: credentials.1.repositories has "[", which is not a pattern; write a name, or * for any part of it`},
		{name + `api_key: '{{env "K"}}'
    daily_cap: -1`, "f:4: credentials.1.daily_cap is not an amount; write US dollars, like 20 or 2.5, or 0 for no cap"},
		{name + `api_key: '{{env "K"}}'
    people: [eve]`, `f:4: credentials.1.people has "eve", who is not among the people; write a name that people: has`},
		{name + `key: '{{env "K"}}'`, `f:3: knows no key "key"; remove it or correct its spelling; the keys here are name, api_key, oauth_token, auth_token, weight, repositories, people, pools, daily_cap` + "\n" +
			"f:2: credentials.1 has no value, or several; write one of api_key, oauth_token and auth_token"},
		{"a: {api_key: hush}", "f:2: does not have the right form; write a list, each entry after a dash"},
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
		{RoleWorker, "ANTHROPIC_API_KEY", "k", "ANTHROPIC_API_KEY is set beside the credentials in /etc/errand.yaml; unset it, or remove the section credentials"},
		{RoleStandalone, "ANTHROPIC_AUTH_TOKEN", "k", "ANTHROPIC_AUTH_TOKEN is set beside the credentials in /etc/errand.yaml; unset it, or remove the section credentials"},
		{RoleWorker, "CLAUDE_CODE_OAUTH_TOKEN", "k", "CLAUDE_CODE_OAUTH_TOKEN is set beside the credentials in /etc/errand.yaml; unset it, or remove the section credentials"},
		{RoleWorker, "ERRAND_MODEL_TOKEN_COMMAND", "k", "ERRAND_MODEL_TOKEN_COMMAND is set beside the credentials in /etc/errand.yaml; unset it, or remove the section credentials"},
		{RoleWorker, "CLAUDE_CODE_USE_BEDROCK", "1", "CLAUDE_CODE_USE_BEDROCK is set beside the credentials in /etc/errand.yaml; unset it, or remove the section credentials"},
		{RoleWorker, "ERRAND_GATEWAY", "off", "ERRAND_GATEWAY is off, so runs could not change their credential; set it to on, or remove the section credentials"},
		{RoleWorker, "", "repositories: {acme/api: {}, acme/web: {}}\ncredentials: [{name: a, api_key: '{{env \"K\"}}', repositories: [acme/api]}]", "/etc/errand.yaml: repositories.acme/web has no credential for the model; add it to the repositories of one of the credentials"},
		{RoleWorker, "", "credentials: [{name: a, api_key: '{{env \"K\"}}', pools: [gpu]}]", "ERRAND_POOL is default, a pool that may use none of the credentials in /etc/errand.yaml; add it to the pools of one of the credentials"},
		{RoleFrontdoor, "", "credentials: [{name: a, api_key: '{{env \"K\"}}', pools: [gpu]}]", ""},
		{RoleWorker, "", "credentials: [{name: a, api_key: '{{env \"K\"}}', pools: [gpu]}, {name: b, api_key: '{{env \"K\"}}', pools: [default]}]", ""},
		{RoleWorker, "ANTHROPIC_BASE_URL", "https://gateway.example", ""},
		{RoleFrontdoor, "ANTHROPIC_API_KEY", "k", ""},
	} {
		t.Run(tc.name+" "+string(tc.role), func(t *testing.T) {
			t.Parallel()
			vars := map[string]string{"REDIS_URL": "redis://:p@h:6379", "ERRAND_CONFIG": "/etc/errand.yaml", "ERRAND_CONSOLE_TOKEN": "console-token-0123"}
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
