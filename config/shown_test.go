package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSections(t *testing.T) {
	t.Parallel()
	var p Problems
	r, _ := parseRouting(&p, "f", []byte(`
repositories:
  acme/api: {trusted: true, env: {A: hush}, setup: [hush], start: [hush], pull_requests: {labels: [a, "b, c"]}, tools: {node: "22", go: "1.26"}}
  acme/web: {base: next, egress: {allow: [go, npm], private: [x.example]}, secrets: {T: "env:hush"}}
rules: [{tool: Bash, action: deny}]
instructions: Be brief.
egress: {allow: any, private: [10.0.0.1]}
registries: [{host: r.example, bearer: '{{env "hush"}}'}, {host: s.example, basic: '{{env "hush"}}'}]
credentials:
  - {name: a, api_key: '{{env "hush"}}'}
  - {name: b, token_command: hush}
  - {name: c, oauth_token: '{{env "hush"}}'}
  - {name: d, auth_token: '{{env "hush"}}'}
prices: {any: {glm: {input: 0, output: 0.5}}, bedrock: {sonnet: {input: 1, output: 2}}}
limits: {user: 2}
budgets: {}
mcp:
  one: {command: one, args: [hush], env: {X: hush}}
  two: {url: "https://mcp.example/hush?hush", headers: {X: hush}}
schedules: {x: {when: every hour, prompt: "`+strings.Repeat("ä", 250)+`"}}
hooks: {y: {secret: '{{env "hush"}}', template: Go.}}
webhooks: {z: {secret: '{{env "hush"}}', url: "https://ops.example/hush"}}
`))
	if len(p) > 0 {
		t.Fatal(p)
	}
	const hidden = "set, hidden"
	want := []Section{
		{
			"repositories",
			[]string{
				"entry", "trusted", "base", "profile", "open", "pool", "env", "setup", "start", "locks", "tools",
				"egress.allow", "egress.private", "pull_requests.branch_prefix", "pull_requests.labels",
				"pull_requests.draft", "pull_requests.template", "directory", "secrets",
			},
			[][]string{
				{
					"by default", "false", "the default branch", "write", "false", "default", "", "", "",
					"lock files at the root", "", "the fleet's", "", "errand/", "", "true", "false", "the root", "",
				},
				{
					"acme/api", "true", "", "", "", "", hidden, hidden, hidden, "", "go: 1.26, node: 22",
					"", "", "", `a, "b, c"`, "", "", "", "",
				},
				{"acme/web", "", "next", "", "", "", "", "", "", "", "", "go, npm", "x.example", "", "", "", "", "", "T"},
			},
		},
		{
			"mcp",
			[]string{"entry", "command", "args", "env", "url", "type", "headers", "profiles"},
			[][]string{
				{"by default", "", "", "", "", "sse if the path ends in /sse, else http", "", "write"},
				{"one", "one", hidden, hidden, "", "", "", ""},
				{"two", "", "", "", "mcp.example", "", hidden, ""},
			},
		},
		{
			"rules",
			[]string{"entry", "tool", "input", "action"},
			[][]string{{"by default", "", "anything", ""}, {"1", "Bash", "", "deny"}},
		},
		{"instructions", []string{"value"}, [][]string{{"Be brief."}}},
		{
			"egress",
			[]string{"key", "value", "default"},
			[][]string{{"allow", "any", "all presets"}, {"private", "10.0.0.1", ""}},
		},
		{
			"registries",
			[]string{"entry", "host", "bearer", "basic", "repositories", "paths"},
			[][]string{
				{"by default", "", "", "", "all", "all"},
				{"1", "r.example", hidden, "", "", ""},
				{"2", "s.example", "", hidden, "", ""},
			},
		},
		{
			"credentials",
			[]string{
				"entry", "name", "api_key", "oauth_token", "auth_token", "token_command", "provider", "profile", "file",
				"repositories", "people", "pools",
			},
			[][]string{
				{
					"by default", "", "", "", "", "", "anthropic", "the worker's credentials", "Google's default",
					"all", "all", "all",
				},
				{"1", "a", hidden, "", "", "", "", "", "", "", "", ""},
				{"2", "b", "", "", "", hidden, "", "", "", "", "", ""},
				{"3", "c", "", hidden, "", "", "", "", "", "", "", ""},
				{"4", "d", "", "", hidden, "", "", "", "", "", "", ""},
			},
		},
		{
			"prices",
			[]string{"entry", "input", "output", "cache_read"},
			[][]string{
				{"by default", "", "", "a tenth of input"},
				{"any glm", "0", "0.5", ""},
				{"bedrock sonnet", "1", "2", ""},
			},
		},
		{
			"limits",
			[]string{"key", "value", "default"},
			[][]string{{"repository", "", "no limit"}, {"user", "2", "no limit"}},
		},
		{
			"budgets",
			[]string{"key", "value", "default"},
			[][]string{
				{"task", "", "no budget"},
				{"user", "", "no budget"},
				{"channel", "", "no budget"},
				{"repository", "", "no budget"},
				{"day", "", "no budget"},
			},
		},
		{
			"slack",
			[]string{"key", "value", "default"},
			[][]string{{"channels", "", "all"}, {"unmapped", "", "read or all"}, {"link", "", "false"}},
		},
		{
			"github",
			[]string{"key", "value", "default"},
			[][]string{{"label", "", "errand"}},
		},
		{"login", []string{"key", "value", "default"}, [][]string{{"groups", "", "groups"}}},
		{
			"schedules",
			[]string{"entry", "when", "prompt", "branch", "profile", "budget"},
			[][]string{
				{"by default", "", "", "the repository's base", "write; of hooks read", "budgets.task"},
				{"x", "every hour", strings.Repeat("ä", maxShown) + "…", "", "", ""},
			},
		},
		{
			"hooks",
			[]string{"entry", "secret", "template", "rate", "branch", "profile", "budget"},
			[][]string{
				{"by default", "", "", "60", "the repository's base", "write; of hooks read", "budgets.task"},
				{"y", hidden, "Go.", "", "", "", ""},
			},
		},
		{
			"webhooks",
			[]string{"entry", "url", "secret", "repositories"},
			[][]string{{"by default", "", "", "all"}, {"z", "ops.example", hidden, ""}},
		},
	}
	got := r.Sections()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("sections (-want +got):\n%s", diff)
	}
	if strings.Contains(fmt.Sprint(got), "hush") {
		t.Error("a secret is shown")
	}
	var keys []string
	for _, section := range (Routing{}).Sections() {
		keys = append(keys, section.Title)
	}
	if want := strings.Fields("egress limits budgets slack github login"); !slices.Equal(keys, want) {
		t.Errorf("without errand.yaml, %q have defaults, want %q", keys, want)
	}
}

func TestSectionsShowEgress(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "[]", "egress: learn": "[learn]", "egress: none": "[none]", "egress: []": "[none]", "egress: [go]": "[go]",
		"egress: {private: [a.b]}": "[none a.b]", "egress: {allow: [go, npm]}": "[go, npm]",
	} {
		var p Problems
		r, _ := parseRouting(&p, "f", []byte(text))
		var values []string
		for _, row := range r.Sections()[0].Rows {
			if row[1] != "" {
				values = append(values, row[1])
			}
		}
		if got := fmt.Sprint(values); got != want || len(p) > 0 {
			t.Errorf("%q is shown as %s, want %s; %v", text, got, want, p)
		}
	}
}

// Text may hold a secret. Whoever adds a key with text hides it, or adds it here because it holds none.
func TestTextIsHiddenOrHoldsNoSecret(t *testing.T) {
	t.Parallel()
	want := strings.Fields(`
instructions plugins.path plugins.sha256 channels.instructions channels.model channels.effort
repositories.instructions repositories.model repositories.models repositories.effort repositories.directory
repositories.base repositories.profile repositories.results repositories.pool repositories.locks repositories.path
repositories.tools repositories.egress repositories.pull_requests.branch_prefix repositories.pull_requests.title
repositories.pull_requests.labels repositories.pull_requests.draft repositories.pull_requests.template
channels.repository people.slack people.github people.email mcp.command mcp.type mcp.profiles
rules.tool rules.input rules.action rules.reason options.models options.efforts egress
registries.host registries.repositories registries.paths
credentials.name credentials.provider credentials.region credentials.profile credentials.project credentials.file
credentials.resource credentials.models credentials.repositories credentials.people credentials.pools budgets.contact
slack.people slack.teams slack.channels slack.bots slack.approvers slack.unmapped github.label github.bots
login.issuer login.client_id login.scopes login.groups login.account
roles.role roles.people roles.groups roles.repositories
schedules.when schedules.prompt schedules.repository schedules.branch schedules.profile schedules.results
hooks.template hooks.repository hooks.branch hooks.profile hooks.results webhooks.repositories`)
	got := textKeys(reflect.TypeFor[Routing](), "")
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("keys that show their text (-want +got):\n%s", diff)
	}
}

// textKeys returns the keys below a type that show their text.
func textKeys(typ reflect.Type, path string) (all []string) {
	if typ == reflect.TypeFor[RepositorySecret]() { // only the names are shown
		return nil
	}
	for _, f := range keysOf(typ) {
		if f.Tag.Get("hidden") == "" {
			all = append(all, textKeys(f.Type, path+"."+f.Tag.Get("yaml"))...)
		}
	}
	switch typ.Kind() {
	case reflect.Map, reflect.Slice, reflect.Pointer:
		return textKeys(typ.Elem(), path)
	case reflect.String:
		return []string{path[1:]}
	case reflect.Struct:
		if len(keysOf(typ)) == 0 {
			return []string{path[1:]}
		}
	}
	return all
}
