package config

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/tasks/policy"
)

// The results of schedules and hooks need Slack as well.
func TestResultsOfAutomationNeedSlack(t *testing.T) {
	t.Parallel()
	const text = `
schedules: {nightly: {when: every hour, prompt: Go., results: C1}, quiet: {when: every hour, prompt: Go.}}
hooks: {alerts: {secret: '{{env "S"}}', template: Go., results: C2}}`
	const remedy = " names a Slack channel although Slack is not configured; set SLACK_BOT_TOKEN, and SLACK_SIGNING_SECRET or SLACK_APP_TOKEN (docs/connect.md), or remove it"
	var p Problems
	c := Config{Redis: Redis{URL: "redis://r"}, Model: Model{APIKey: "k"}, Paths: Paths{File: "f"}}
	c.Routing, _ = parseRouting(&p, "f", []byte(text))
	c.checkRole(&p, RoleStandalone)
	if len(p) != 2 || p[0].String() != "f: hooks.alerts.results"+remedy ||
		p[1].String() != "f: schedules.nightly.results"+remedy {
		t.Errorf("problems %v", p)
	}
	if diff := cmp.Diff(map[string]string{"schedule nightly": "C1", "hook alerts": "C2"},
		c.Routing.AutomationResults()); diff != "" {
		t.Error(diff)
	}
}

// Results without Slack are a configuration problem; a partly configured Slack is reported instead.
func TestResultsNeedSlack(t *testing.T) {
	t.Parallel()
	const problem = "errand.yaml: repositories.acme/handbook.results names a Slack channel although Slack is not configured; " +
		"set SLACK_BOT_TOKEN, and SLACK_SIGNING_SECRET or SLACK_APP_TOKEN (docs/connect.md), or remove it to have results posted on GitHub"
	for name, tc := range map[string]struct {
		role Role
		c    Slack
		want []string
	}{
		"no Slack":         {RoleStandalone, Slack{}, []string{problem}},
		"no Slack, worker": {RoleWorker, Slack{}, []string{problem}},

		"Slack": {RoleStandalone, Slack{BotToken: "b", SigningSecret: "s"}, nil},
		"Slack without token": {
			RoleStandalone,
			Slack{SigningSecret: "s"},
			[]string{"SLACK_BOT_TOKEN is not set although Slack is configured; set it to the bot token (xoxb-…), or unset all SLACK_ variables to disable Slack"},
		},
	} {
		var p Problems
		c := Config{
			Slack: tc.c, Redis: Redis{URL: "redis://r"}, Model: Model{APIKey: "k"}, Paths: Paths{File: "errand.yaml"},
		}
		c.Routing, _ = parseRouting(&p, "errand.yaml",
			[]byte("repositories: {acme/handbook: {results: C1}, acme/api: {}}"))
		c.checkRole(&p, tc.role)
		var got []string
		for _, one := range p {
			got = append(got, one.String())
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// Limits for people in Slack need GitHub. By default they are on as soon as one account on GitHub is known.
func TestRightsNeedGitHub(t *testing.T) {
	t.Parallel()
	const problem = "errand.yaml: slack.unmapped limits people by their rights on GitHub, which is not configured; set GITHUB_APP_ID or GITHUB_TOKEN (docs/connect.md), or remove it"
	const unproven = "errand.yaml: slack.link lets people prove their account by a login at GitHub, which is not configured; set login: with GitHub as the issuer, GITHUB_APP_ID or GITHUB_TOKEN, and ERRAND_PUBLIC_URL (docs/slack.md), or remove it"
	hub := GitHub{Token: "t", WebhookSecret: "s", URL: "https://github.com", APIURL: "https://api.github.com/"}
	const login = "roles: [{role: viewer, people: [a]}], login: {client_id: c, issuer: "
	for text, tc := range map[string]struct {
		unmapped policy.Unmapped
		github   GitHub
		want     []string
	}{
		"slack: {link: true}": {policy.UnmappedRead, hub, []string{unproven}},
		"{slack: {link: true}, " + login + `"https://github.com/"}}`:                  {policy.UnmappedRead, hub, nil},
		"{slack: {link: true, unmapped: refuse}, " + login + `"https://github.com"}}`: {policy.UnmappedRefuse, hub, nil},
		"{slack: {link: true, unmapped: all}, " + login + `"https://id.example.com"}}`: {
			policy.UnmappedAll, hub, []string{unproven},
		},
		"{}":                           {policy.UnmappedAll, GitHub{}, nil},
		"people: {ann: {slack: U1}}":   {policy.UnmappedAll, GitHub{}, nil},
		"people: {ann: {github: ann}}": {policy.UnmappedRead, GitHub{}, nil},
		"slack: {unmapped: all}":       {policy.UnmappedAll, GitHub{}, nil},
		"slack: {unmapped: refuse}":    {policy.UnmappedRefuse, GitHub{}, []string{problem}},
		"slack: {unmapped: read}":      {policy.UnmappedRead, GitHub{Token: "t", WebhookSecret: "s"}, nil},
		"{slack: {unmapped: all}, people: {ann: {github: ann}}}": {policy.UnmappedAll, GitHub{}, nil},
	} {
		var p Problems
		c := Config{
			GitHub: tc.github, HTTP: HTTP{LoginSecret: "s", PublicURL: "https://errand.example"},
			Redis: Redis{URL: "redis://r"}, Model: Model{APIKey: "k"}, Paths: Paths{File: "errand.yaml"},
		}
		c.Routing, _ = parseRouting(&p, "errand.yaml", []byte(text))
		c.checkRole(&p, RoleStandalone)
		var got []string
		for _, one := range p {
			got = append(got, one.String())
		}
		if diff := cmp.Diff(tc.want, got); diff != "" || c.Routing.Unmapped() != tc.unmapped {
			t.Errorf("%s: %q %s", text, c.Routing.Unmapped(), diff)
		}
	}
}

// Results of schedules and hooks are listed for their own repositories only, so that threads of them can be continued.
func TestResultsOfAutomationAreListed(t *testing.T) {
	t.Parallel()
	var p Problems
	r, _ := parseRouting(&p, "f", []byte(`
schedules: {nightly: {when: every hour, prompt: Go., repository: Acme/api, results: C1}, quiet: {when: every hour, prompt: Go., repository: acme/quiet}}
hooks: {alerts: {secret: '{{env "S"}}', template: Go., repository: acme/web, results: C2}}`))
	for place, want := range map[[2]string]bool{
		{"C1", "acme/api"}: true, {"C2", "acme/web"}: true, {"C1", "acme/web"}: false, {"C2", "acme/api"}: false,
		{"", "acme/quiet"}: false,
	} {
		if r.Lists(place[0], place[1]) != want {
			t.Errorf("%v is listed: %t", place, !want)
		}
	}
}
