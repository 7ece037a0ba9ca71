package config

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/tasks/policy"
)

func TestParseRouting(t *testing.T) {
	t.Parallel()
	var p Problems
	got, _ := parseRouting(&p, "errand.yaml", []byte(`
repositories:
  acme/api: {trusted: true, base: develop, profile: read}
  acme/web: {open: true}
  acme/handbook: {results: C0456}
channels:
  C0123: {repository: Acme/API}
  C0789: {private: true}
people:
  ann: {slack: U1, github: ann-a}
  ben: {github: ben_acme}
  bot: {github: "dependabot[bot]"}
rules:
  - {tool: Bash, input: "*git push*", action: deny, reason: No.}
  - {tool: "*", action: ask}
limits: {repository: 2}
budgets: {task: 2.5, day: 100, contact: "#platform"}
slack: {people: [U1], teams: [T1, E1], channels: [C1], bots: [B1], approvers: [U2], unmapped: refuse, link: true}
github: {label: run errand, bots: ["renovate[bot]"]}
schedules:
  deps: {when: every weekday at 07:00 Europe/Berlin, prompt: Update., repository: acme/api, branch: next, profile: write, budget: 2.5}
hooks:
  alerts: {secret: '{{env "ALERTS_SECRET"}}', template: "Look at {{.title}}.", repository: acme/web, rate: 10}
webhooks:
  ops: {url: "https://ops.example", secret: '{{env "OPS_SECRET"}}', repositories: ["acme/*"]}
`))
	want := Routing{
		Repositories: map[string]Repository{
			"acme/api": {Trusted: true, Base: "develop", Profile: ProfileRead}, "acme/web": {Open: true},
			"acme/handbook": {Profile: ProfileRead, Results: "C0456"},
		},
		Channels: map[string]Channel{"C0123": {Repository: "Acme/API"}, "C0789": {Private: true}},
		People: map[string]Person{
			"ann": {Slack: "U1", GitHub: "ann-a"}, "ben": {GitHub: "ben_acme"}, "bot": {GitHub: "dependabot[bot]"},
		},
		Rules: []Rule{
			{Tool: "Bash", Input: "*git push*", Action: ActionDeny, Reason: "No."}, {Tool: "*", Action: ActionAsk},
		},
		Limits:  Limits{Repository: 2},
		Budgets: Budgets{Task: 2.5, Day: 100, Contact: "#platform"},
		Slack: SlackPeople{
			People: []string{"U1"}, Teams: []string{"T1", "E1"}, Channels: []string{"C1"}, Bots: []string{"B1"},
			Approvers: []string{"U2"}, Unmapped: policy.UnmappedRefuse, Link: true,
		},
		GitHub: GitHubPeople{Label: "run errand", Bots: []string{"renovate[bot]"}},
		Hooks: map[string]Hook{"alerts": {
			Secret: `{{env "ALERTS_SECRET"}}`, Template: "Look at {{.title}}.", Rate: 10,
			Automation: Automation{Repository: "acme/web"},
		}},
		Webhooks: map[string]Webhook{"ops": {
			URL: "https://ops.example", Secret: `{{env "OPS_SECRET"}}`,
			Repositories: []string{"acme/*"},
		}},
		Variables: []string{"ALERTS_SECRET", "OPS_SECRET"},
		Schedules: map[string]Schedule{"deps": {
			When: "every weekday at 07:00 Europe/Berlin", Prompt: "Update.", Automation: Automation{
				Repository: "acme/api", Branch: "next", Profile: ProfileWrite, Budget: 2.5,
			},
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" || len(p) > 0 {
		t.Errorf("parseRouting (-want +got):\n%s\nproblems: %v", diff, p)
	}
	for place, want := range map[[2]string]bool{
		{"C0123", "acme/api"}: true, {"C0123", "acme/web"}: false, {"C0789", "acme/web"}: true,
		{"C0456", "acme/handbook"}: true, {"C1", "acme/web"}: false, {"", "acme/web"}: false,
	} {
		if got.Lists(place[0], place[1]) != want {
			t.Errorf("%v is listed: %t", place, !want)
		}
	}
	if _, ok := got.Repository("acme/other"); ok {
		t.Error("Repository found what is not there")
	}
}

func TestEmptyRouting(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "# nothing\n", "repositories:\n"} {
		var p Problems
		if r, _ := parseRouting(&p, "errand.yaml", []byte(text)); len(p) > 0 || len(r.Repositories) > 0 {
			t.Errorf("%q: %+v, problems %v", text, r, p)
		}
	}
}

// Parts of the file may be repeated by their anchors.
func TestMergedRouting(t *testing.T) {
	t.Parallel()
	var p Problems
	r, _ := parseRouting(&p, "f", []byte(`repositories:
  o/r: &r {trusted: true}
  o/s: &s {<<: *r, base: next}
  o/t: {<<: [*r, *s], open: true}
  o/u:
`))
	want := map[string]Repository{
		"o/r": {Trusted: true}, "o/s": {Trusted: true, Base: "next"}, "o/t": {Trusted: true, Base: "next", Open: true},
		"o/u": {},
	}
	if diff := cmp.Diff(want, r.Repositories); diff != "" || len(p) > 0 {
		t.Errorf("%v (-want +got):\n%s", p, diff)
	}
}

func TestRoutingProblems(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ text, want string }{
		{
			"repos: {}",
			`f:1: knows no key "repos"; remove it or correct its spelling; the keys here are repositories, channels, people, mcp, rules, options, instructions, plugins, egress, registries, credentials, prices, limits, budgets, slack, github, login, roles, schedules, hooks, webhooks`,
		},
		{
			"repositories:\n  o/r:\n    trust: true",
			`f:3: knows no key "trust"; remove it or correct its spelling; the keys here are trusted, base, profile, results, open, pool, instructions, env, setup, start, locks, path, tools, egress, pull_requests, model, models, effort, directory, secrets`,
		},
		{"repositories:\n  o/r: {trusted: maybe}", `f:2: repositories.o/r.trusted is "maybe"; write true or false`},
		{
			"egress: [a b]",
			`f:1: egress is invalid: "a b" is not a host, *.domain, host:port or the name of a preset (debian, dotnet, github, go, java, npm, python, ruby, rust); correct it; docs/environment.md lists what can be declared`,
		},
		{
			"registries:\n  - {host: h.example, bearer: x}",
			`f:2: registries.1.bearer holds a credential; put it into the environment as NAME and write {{env "NAME"}} in its place`,
		},
		{
			"registries:\n  - {host: h.example, bearer: '{{env \"T\"}}'}\n  - {host: H.example, bearer: '{{env \"T\"}}'}", `f:3: registries.2 is the second one of its host; keep one of them`,
		},
		{
			"plugins:\n  - {path: house, sha256: 5F70}",
			`f:2: plugins.1.path is "house", which is not an absolute path; write it from / on` + "\n" +
				`f:2: plugins.1 has no SHA-256 of 64 lower-case hexadecimal digits; write sha256: with what the command in docs/configure.md prints`,
		},
		{
			"plugins:\n  - {path: /a/x, sha256: &s " + strings.Repeat("0", 64) + "}\n  - {path: /b/X, sha256: *s}",
			`f:3: plugins.2 has the name of another one; rename the directory: its skills are called by its name`,
		},
		{
			"channels:\n  C1:\n    model: --help\n",
			`f:3: channels.C1.model is "--help"; write a name that the CLI takes, like opus or high`,
		},
		{
			"channels:\n  C1: {effort: high}\ninstructions: " + strings.Repeat("x", maxInstructions+1),
			`f:3: instructions has a NUL byte or more than 20 KiB; shorten it, or make the rest a skill under plugins`,
		},
		{"repositories: [o/r]", `f:1: repositories does not have the right form; write keys with values`},
		{"egress: [go, {a: b}]", `f:1: egress does not have the right form; write a list, each entry after a dash, or any, none or learn`},
		{"repositories:\n  o/r: true", `f:2: repositories.o/r does not have the right form; write keys with values`},
		{"people:\n  a: {slack: [U1]}", "f:2: people.a.slack does not have the right form; write text"},
		{"channels: {}\nchannels: {}", `f:2: repeats the key "channels" of line 1; keep one of them`},
		{"a: b: c", "f is not YAML (mapping values are not allowed in this context); correct the line"},
		{
			"people:\n\tann: {}",
			"f:2: is not YAML (found character that cannot start any token); indent it with spaces instead of tabs",
		},
		{"people: \xff", "f is not YAML (invalid leading UTF-8 octet); save the file as UTF-8"},
		{"registries: [hush]", `f:1: registries.1 does not have the right form; write keys with values`},
		{"repositories: {o/r: {secrets: hush}}", "f:1: repositories.o/r.secrets does not have the right form; write keys with values"},
		{"credentials: hush", `f:1: credentials does not have the right form; write a list, each entry after a dash`},
		{"text", `f:1: does not have the right form; write keys with values`},
		{"rules:\n  - {tool: [x], action: ask}", "f:2: rules.1.tool does not have the right form; write text"},
		{"repositories:\n  o/r: {trusted: yep, open: yep}", `f:2: repositories.o/r.trusted is "yep"; write true or false` +
			"\n" + `f:2: repositories.o/r.open is "yep"; write true or false`},
		{"repositories: &x\n  <<: *x", "f is not YAML (anchor 'x' value contains itself); correct the line"},
		{"budgets: &x {day: 2}\nlimits:\n  <<: *x\n  user: 1", `f:1: knows no key "day"; remove it or correct its spelling; the keys here are repository, user`},
		{
			"---\npeople: {}\n---\npeople: {}",
			"f holds more than one document; remove the line --- and merge what follows it",
		},
		{
			"repositories:\n  nothing: {}",
			"f:2: repositories.nothing is not the name of a repository; write it as owner/name",
		},
		{
			"repositories:\n  a/B: {}\n  a/b: {}",
			"f:3: repositories.a/b is the same repository as a/B; keep one of them; GitHub does not mind upper and lower case",
		},
		{
			"repositories:\n  o/r:\n    secrets: {A: secret}",
			"f:3: repositories.o/r.secrets.A does not say where its value is; write env:NAME for a variable of the worker, file:/path for a file, or command:PROGRAM ARGUMENTS",
		},
		{
			"repositories:\n  o/r:\n    secrets: {HOME: env:A}",
			"f:3: repositories.o/r.secrets.HOME cannot be used: HOME is set by errand; choose another name",
		},
		{
			"repositories:\n  o/r:\n    pull_requests: {drafts: true}",
			`f:3: knows no key "drafts"; remove it or correct its spelling; the keys here are branch_prefix, title, labels, draft, template`,
		},
		{
			"repositories:\n  o/r:\n    profile: admin",
			"f:3: repositories.o/r.profile must be `write` or `read`, not \"admin\"",
		},
		{
			"repositories:\n  o/r:\n    base: -f",
			`f:3: repositories.o/r.base is "-f", which is not the name of a branch; write it without refs/heads/, like main`,
		},
		{
			"github:\n  bots: [renovate]",
			`f:2: github.bots.1 must be the login of a bot like "renovate[bot]", not "renovate"`,
		},
		{
			"repositories:\n  a/b:\n    results: general",
			`f:3: repositories.a/b.results is "general", which is not the id of a channel; write the id that the channel's details show, like C0123ABCD`,
		},
		{
			"repositories:\n  a/b:\n    results: D0123",
			`f:3: repositories.a/b.results is "D0123", which is not the id of a channel; write the id that the channel's details show, like C0123ABCD`,
		},
		{
			"repositories:\n  a/b:\n    profile: write\n    results: C0123",
			"f:4: repositories.a/b.results cannot be combined with profile: write; remove results, or set profile: read",
		},
		{
			"github:\n  label: " + strings.Repeat("ä", 51),
			"f:2: github.label must be a label of at most 50 characters in one line",
		},
		{
			"channels:\n  general: {repository: o/r}",
			"f:2: channels.general is not the id of a channel; write the id that the channel's details show, like C0123ABCD",
		},
		{"channels:\n  C1:", "f:2: channels.C1 has no repository of the form owner/name; add `repository: owner/name`"},
		{
			"repositories: {o/r: {}}\nchannels:\n  C1:\n    repository: o/x",
			`f:4: channels.C1.repository is "o/x", which is not among the repositories; list it under repositories or correct its spelling`,
		},
		{
			"people:\n  a: {slack: ann}",
			`f:2: people.a.slack is "ann", which is not the id of a user; write the member id that the profile shows, like U0123ABCD`,
		},
		{"people:\n  a: {github: '@ann'}", `f:2: people.a.github is "@ann", which is not a login; write it without @`},
		{
			"people:\n  a: {slack: U1}\n  b: {slack: U1}",
			"f:3: people.b is the same person as a by U1; give each account to one person",
		},
		{
			"people:\n  Ann: {slack: U1}\n  ann: {slack: U2}",
			"f:3: people.ann is the same name as Ann; give each person one name; upper and lower case make no difference",
		},
		{"rules:\n  tool: Bash", "f:2: rules does not have the right form; write a list, each entry after a dash"},
		{
			"rules:\n  - tool: Bash\n    act: deny",
			`f:3: knows no key "act"; remove it or correct its spelling; the keys here are tool, input, action, reason` + "\n" +
				`f:2: rules.1.action must be allow, deny or ask, not ""`,
		},
		{"rules:\n  - tool: action\n    action: forbid", `f:3: rules.1.action must be allow, deny or ask, not "forbid"`},
		{"rules:\n  - action: deny", "f:2: rules.1 has no tool; add `tool: Bash`, or `tool: \"*\"` for all"},
		{
			"rules:\n  - {tool: Bash, action: deny}\n  - tool: Bash\n    action: delegate",
			`f:4: rules.2.action must be allow, deny or ask, not "delegate"`,
		},
		{"limits: {user: 1e1}\nhooks: {a: {secret: '{{env \"A\"}}', template: x, rate: 60.0}}", ""},
		{"limits: {user: .inf}", `f:1: limits.user is ".inf"; write a whole number`},
		{"limits: {user: many}", `f:1: limits.user is "many"; write a whole number`},
		{
			"limits:\n  user: 0.5",
			`f:2: limits.user is "0.5"; write a whole number`,
		},
		{
			"limits:\n  user: 1\n  repository: -1",
			"f:3: limits.repository is not a number of runs; write the number of concurrent runs, like 3, or 0 for no limit",
		},
		{
			"options:\n  models: [opus, \"\"]",
			`f:2: options.models has ""; write names that the CLI takes, like opus or high`,
		},
		{
			"options:\n  efforts: [--high]",
			`f:2: options.efforts has "--high"; write names that the CLI takes, like opus or high`,
		},
		{"budgets:\n  day: lots", `f:2: budgets.day is "lots"; write a number`},
		{
			"budgets:\n  task: 1\n  day: -0.5",
			"f:3: budgets.day is not an amount; write US dollars, like 20 or 2.5, or 0 for no budget",
		},
		{"budgets:\n  user: .inf\n  channel: .nan\n  repository: 1e300", strings.Join([]string{
			"f:2: budgets.user is not an amount; write US dollars, like 20 or 2.5, or 0 for no budget",
			"f:3: budgets.channel is not an amount; write US dollars, like 20 or 2.5, or 0 for no budget",
			"f:4: budgets.repository is not an amount; write US dollars, like 20 or 2.5, or 0 for no budget",
		}, "\n")},
		{
			"budgets:\n  contact: |\n    a\n    b",
			"f:2: budgets.contact is not one short line; write who can raise a budget, like #platform or ann@example.com",
		},
		{
			"slack:\n  approvers:\n    - U1\n    - ann",
			`f:4: slack.approvers.2 is "ann", which is not the id of a user; write the member id that the profile shows, like U0123ABCD`,
		},
		{"slack:\n  teams: [U1]\n  channels: [general]\n  bots: [U1]", strings.Join([]string{
			`f:2: slack.teams.1 is "U1", which is not the id of a workspace; write the id in the workspace's address in a browser, like T0123ABCD`,
			`f:3: slack.channels.1 is "general", which is not the id of a channel; write the id that the channel's details show, like C0123ABCD`,
			`f:4: slack.bots.1 is "U1", which is not the id of a bot; write the bot_id of its messages, like B0123ABCD`,
		}, "\n")},
		{"slack:\n  unmapped: write", "f:2: slack.unmapped must be `read`, `refuse` or `all`, not \"write\""},
		{
			"channels:\n  C1: {private: false}",
			"f:2: channels.C1 has no repository of the form owner/name; add `repository: owner/name`",
		},
		{
			"slack: {match_email: [acme]}",
			`f:1: knows no key "match_email"; list accounts under people:, or set slack: link: true, so that people link their own`,
		},
		{
			"slack: {approver: U1}",
			`f:1: knows no key "approver"; remove it or correct its spelling; the keys here are people, teams, channels, bots, approvers, unmapped, link`,
		},
		{
			"budgets:\n  weekly: 5",
			`f:2: knows no key "weekly"; remove it or correct its spelling; the keys here are task, user, channel, repository, day, contact`,
		},
		{
			"budgets:\n  ask_above: 3",
			`f:2: knows no key "ask_above"; limit what a task may cost with budgets: task:`,
		},
		{
			"schedules:\n  Deps: {when: every day at 07:00, prompt: Go.}",
			`f:2: schedules.Deps cannot be a name; write lower-case letters, digits and dashes, at most 32, with a letter first`,
		},
		{
			"schedules:\n  x: {wen: 1}",
			`f:2: knows no key "wen"; remove it or correct its spelling; the keys here are when, prompt, repository, branch, profile, budget, results`,
		},
		{
			"repositories: {o/r: {}}\nschedules:\n  x:\n    when: every day at 07:00 Europe/Paradise\n    repository: o/x\n    profile: admin\n    budget: -1\n    results: D0123ABCD",
			strings.Join([]string{
				`f:5: schedules.x.repository is "o/x", which is not among the repositories; list it under repositories or correct its spelling`,
				"f:6: schedules.x.profile must be `write` or `read`, not \"admin\"",
				"f:7: schedules.x.budget is not an amount; write US dollars, like 2 or 0.5",
				`f:8: schedules.x.results is "D0123ABCD", which is not the id of a channel; write the id that the channel's details show, like C0123ABCD`,
				"f:4: schedules.x.when names the time zone \"Europe/Paradise\", which does not exist; write it like `every weekday at 07:00 Europe/Berlin` or `0 7 * * 1-5 Europe/Berlin`",
				"f:3: schedules.x has no prompt; add `prompt: …`, which says what to do",
			}, "\n"),
		},
		{
			"schedules:\n  x:\n    when: every hour\n    prompt: Go.\n    branch: next",
			"f:5: schedules.x.branch is of no repository; add `repository: owner/name`",
		},
		{
			"schedules:\n  x:\n    when: every hour\n    prompt: Go.\n    repository: o/r\n    branch: refs/pull/7/head",
			`f:6: schedules.x.branch is "refs/pull/7/head", which is not the name of a branch; ` +
				`write it without refs/heads/, like main`,
		},
		{
			"hooks:\n  x:\n    secret: '{{env \"S\"}}'\n    template: Go.\n    repository: o/r\n    branch: a..b",
			`f:6: hooks.x.branch is "a..b", which is not the name of a branch; ` +
				`write it without refs/heads/, like main`,
		},
		{"hooks:\n  x:\n    rate: -1", strings.Join([]string{
			"f:2: hooks.x has no secret; add `secret: '{{env \"NAME\"}}'`, and set NAME at front doors",
			"f:2: hooks.x has no template; add `template: …`, which says what to do with {{.field}} of a request",
			"f:3: hooks.x.rate must be from 1 to 100000 tasks an hour",
		}, "\n")},
		{"hooks:\n  x:\n    secret: s3cret\n    template: '{{.a'", strings.Join([]string{
			`f:3: hooks.x.secret holds a credential; put it into the environment as NAME and write {{env "NAME"}} in its place`,
			"f:4: hooks.x.template cannot be read: template: x:1: unclosed action; see docs/automation.md",
		}, "\n")},
		{"webhooks:\n  X:\n    url: ftp://ops\n    repositories: ['[']", strings.Join([]string{
			"f:2: webhooks.X cannot be a name; write lower-case letters, digits and dashes, at most 32, with a letter first",
			"f:2: webhooks.X has no secret; add `secret: '{{env \"NAME\"}}'`, and set NAME at front doors",
			"f:3: webhooks.X.url has no URL that errand can call; write it like https://example.com/errand",
			`f:4: webhooks.X.repositories has "[", which is not a pattern; write a name, or * for any part of it`,
		}, "\n")},
		{
			"repositories:\n  o/r: &x {profile: admin}\n  o/s: *x",
			"f:2: repositories.o/r.profile must be `write` or `read`, not \"admin\"" + "\n" +
				"f:2: repositories.o/s.profile must be `write` or `read`, not \"admin\"",
		},
	} {
		t.Run(tc.text, func(t *testing.T) {
			t.Parallel()
			var p Problems
			parseRouting(&p, "f", []byte(tc.text))
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

// Channels need no list of repositories.
func TestChannelWithoutRepositories(t *testing.T) {
	t.Parallel()
	var p Problems
	if _, _ = parseRouting(&p, "f", []byte("channels: {C1: {repository: o/r}}")); len(p) > 0 {
		t.Error(p)
	}
}

func TestHostsOfRepositories(t *testing.T) {
	t.Parallel()
	var p Problems
	r, _ := parseRouting(&p, "f",
		[]byte("repositories: {GitHub.com/acme/api: {}, git.example/acme/web: {}, group/sub/api: {}, ann_acme/api: {}}\nchannels: {C1: {repository: github.com/acme/api}}"))
	r.trimHost("github.com")
	if got := slices.Sorted(maps.Keys(r.Repositories)); len(p) > 0 ||
		!slices.Equal(got, []string{"acme/api", "ann_acme/api", "git.example/acme/web", "group/sub/api"}) {
		t.Errorf("got %q, %v", got, p)
	}
	if got := r.Channels["C1"].Repository; got != "acme/api" {
		t.Errorf("the channel's is %s", got)
	}
	r, _ = parseRouting(&p, "f", []byte("repositories: {github.com/acme/api: {}, acme/api: {}}"))
	if twice := r.trimHost("github.com"); !slices.Equal(twice, []string{"acme/api"}) {
		t.Errorf("listed twice: %q", twice)
	}
}
