package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestUnknown(t *testing.T) {
	t.Parallel()
	environ := []string{
		"ERRAND_RUN_LIMT=1h", "ERRAND_RUN_LIMIT=1h", "PATH=/bin", "ERRAND_HTTP_ADDR=x", "ERRAND_RUN=1",
		"ERRAND_WORKER=1.2.3", "ERRAND_SANDBO=x", "ERRAND_CONSOLE=x", "ERRAND_ZZZZZZZZZZ=s3cret",
		"ERRAND_CONSOLETOKEN=s3cret", "ERRAND_", "ANTHROPIC_MODEL=opus", "ANTHROPIC_SMALL_FAST_MODEL=haiku",
		"ANTHROPIC_DEFAULT_HAIKU_MODEL=haiku", "ERRAND_READY_CLIS=2",
	}
	var got []string
	for _, p := range Unknown(environ) {
		got = append(got, p.String())
	}
	want := []string{
		"ANTHROPIC_MODEL is not a setting of errand and has no effect; set ERRAND_MODEL",
		"ANTHROPIC_SMALL_FAST_MODEL is not a setting of errand and has no effect; " +
			"set ANTHROPIC_DEFAULT_HAIKU_MODEL",
		"ERRAND_ is not a setting of errand and has no effect; remove it; docs/settings.md lists the settings",
		"ERRAND_CONSOLE is not a setting of errand and has no effect; did you mean ERRAND_CONSOLE_TOKEN?",
		"ERRAND_CONSOLETOKEN is not a setting of errand and has no effect; did you mean ERRAND_CONSOLE_TOKEN?",
		"ERRAND_READY_CLIS is not a setting of errand and has no effect; " +
			"remove it; every run starts its own CLI, which takes about 0.25 s",
		"ERRAND_RUN_LIMT is not a setting of errand and has no effect; did you mean ERRAND_RUN_LIMIT?",
		"ERRAND_SANDBO is not a setting of errand and has no effect; did you mean ERRAND_SANDBOX?",
		"ERRAND_ZZZZZZZZZZ is not a setting of errand and has no effect; remove it; docs/settings.md lists the settings",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A former setting that is still set is an error, except for variables that other programs read, too.
func TestFormerSettingIsAnError(t *testing.T) {
	t.Parallel()
	set := map[string]string{
		"ERRAND_KEEP_LOGS": "0s", "GITHUB_APP_PRIVATE_KEY_FILE": "/key", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://x",
	}
	_, err := Load(func(name string) string { return set[name] }, RoleFrontdoor)
	if err == nil {
		t.Fatal("no error")
	}
	want := []string{
		"ERRAND_KEEP_LOGS is not a setting of errand any more; " +
			"set ERRAND_KEEP_LOGS_GB; logs that are older than 30 days are removed as well",
		"GITHUB_APP_PRIVATE_KEY_FILE is not a setting of errand any more; set GITHUB_APP_PRIVATE_KEY to the path",
	}
	for _, problem := range want {
		if !strings.Contains(err.Error(), problem) {
			t.Errorf("no %q in %v", problem, err)
		}
	}
	if strings.Contains(err.Error(), "OTEL") {
		t.Error(err)
	}
}

// A former key is an error that says what replaces it. In another section, or in the environment, its name is none.
func TestFormerKeys(t *testing.T) {
	t.Parallel()
	for text, former := range map[string]string{
		"budgets: {ask_above: 1}": "budgets: ask_above", "budgets: {reserve: 1}": "budgets: reserve",
		"credentials:\n  - {name: a, daily_cap: 1}": "credentials: daily_cap",
		"credentials:\n  - {name: a, weight: 1}":    "credentials: weight",
		"github: {fork_runs: 1}":                    "github: fork_runs",
		"limits: {credential: 1}":                   "limits: credential",
		"prices: {api: {a: {cache_write: 1}}}":      "prices: cache_write",
		"prices: {api: {a: {cache_write_1h: 1}}}":   "prices: cache_write_1h",
		"registries:\n  - {realm: h}":               "registries: realm",
		"slack: {match_email: [h]}":                 "slack: match_email",
		"webhooks: {a: {endings: [failed]}}":        "webhooks: endings",
		"credential: {a: b}":                        "", "credentials:\n  - {name: a, type: bedrock}": "",
		"registries:\n  - {type: npm}": "", "repositories: {a/b: {weight: 2}}": "",
	} {
		var p Problems
		parseRouting(&p, "f", []byte(text))
		var got []string
		for _, problem := range p {
			if strings.Contains(problem.What, "knows no key") {
				got = append(got, problem.Remedy)
			}
		}
		if len(got) != 1 || former != "" && got[0] != removed[former] ||
			former == "" && !strings.Contains(got[0], "the keys here are ") {
			t.Errorf("%s: %q", text, got)
		}
	}
	if got := Unknown([]string{"type=x", "weight=1", "credential=x"}); len(got) > 0 {
		t.Errorf("of the environment: %v", got)
	}
}

func TestSummary(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]Config{
		"No errand.yaml: no repositories, limits or budgets are in force":           {},
		"errand.yaml sets nothing: no repositories, limits or budgets are in force": {Paths: Paths{File: "errand.yaml"}},
		"errand.yaml: repositories (2), channels (1), limits, budgets": {
			Paths: Paths{File: "errand.yaml"}, Routing: Routing{
				Repositories: map[string]Repository{"a/b": {}, "a/c": {}}, Channels: map[string]Channel{"C1": {}},
				Limits: Limits{Repository: 3}, Budgets: Budgets{Day: 200, Task: 2.5},
			},
		},
	} {
		if got := c.Summary(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if c.Routed() != (len(c.Routing.Repositories) > 0) {
			t.Errorf("%s: routed %t", want, c.Routed())
		}
	}
}
