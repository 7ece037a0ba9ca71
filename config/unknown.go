package config

import (
	"maps"
	"slices"
	"strings"

	"github.com/errand-fleet/errand/internal/spelling"
)

// ofRuns are the variables that package agent sets in the environment of a run, where someone may start a program.
var ofRuns = []string{"ERRAND_RUN", "ERRAND_WORKER"}

// removed are former variables and keys of errand.yaml, and variables of the CLI that runs do not get, with what to do
// instead. A key follows its section, because others may have one of the same name.
var removed = map[string]string{
	"budgets: ask_above":     "limit what a task may cost with budgets: task:",
	"budgets: reserve":       "remove it; a running task without a maximum reserves $1",
	"credentials: daily_cap": "remove it; set the limit at the provider, or budgets: day:",
	"credentials: weight":    "remove it; runs are spread evenly among the credentials that are free",
	"github: fork_runs":      "remove it; forks of one author get 5 reviews a day",
	"limits: credential":     "remove it; a throttled credential starts its runs one by one",
	"prices: cache_write":    "remove it; it is 1.25 times input",
	"prices: cache_write_1h": "remove it; it is twice input",
	"registries: realm":      "remove it; such registries are not supported",
	"slack: match_email":     "list accounts under people:, or set slack: link: true, so that people link their own",
	"webhooks: endings":      "remove it; the receiver gets the kind of ending with the task",

	"ANTHROPIC_MODEL":            "set ERRAND_MODEL",
	"ANTHROPIC_SMALL_FAST_MODEL": "set ANTHROPIC_DEFAULT_HAIKU_MODEL",

	"GITHUB_APP_PRIVATE_KEY_FILE":        "set GITHUB_APP_PRIVATE_KEY to the path",
	"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "set OTEL_EXPORTER_OTLP_ENDPOINT, without /v1/traces",
	"OTEL_EXPORTER_OTLP_TRACES_HEADERS":  "set OTEL_EXPORTER_OTLP_HEADERS",

	"ERRAND_FLEET_TOKEN":      "remove it; the token follows from the password of Redis",
	"ERRAND_GATEWAY_UPSTREAM": "set the base URL of each provider in use, such as ANTHROPIC_BASE_URL (docs/models.md)",
	"ERRAND_GRACE":            "remove it; stopping a run takes at most 15 s",
	"ERRAND_KEEP_CLONES":      "set ERRAND_KEEP_CLONES_GB; clones without a run for 7 days are removed as well",
	"ERRAND_KEEP_LOGS":        "set ERRAND_KEEP_LOGS_GB; logs that are older than 30 days are removed as well",
	"ERRAND_LOG_FORMAT":       "remove it; the log is text on a terminal, and otherwise JSON",
	"ERRAND_MIN_CLAUDE":       "remove it; errand needs the version that it is verified with, or a later one",
	"ERRAND_MODEL_TOKEN_LIFE": "remove it; a token is used for 5 minutes, or until it is refused",
	"ERRAND_PUBLISH":          "set ERRAND_HTTP_ADDR, which Compose publishes",
	"ERRAND_QUEUES_WRITABLE":  "remove it; the console pauses and cancels",
	"ERRAND_SIGNING_KEY_FILE": "set ERRAND_SIGNING_KEY to the path",
	"ERRAND_READY_CLIS":       "remove it; every run starts its own CLI, which takes about 0.25 s",
}

// former adds a problem for each variable that was a setting: what it meant must not silently cease to hold, such as
// that logs are never removed. Those that other programs read, too, are only reported by [Unknown].
func former(p *Problems, getenv func(string) string) {
	for _, name := range slices.Sorted(maps.Keys(removed)) {
		ours := strings.HasPrefix(name, "ERRAND_") || strings.HasPrefix(name, "GITHUB_")
		if ours && getenv(name) != "" {
			p.add(name, "is not a setting of errand any more", removed[name])
		}
	}
}

// Unknown returns a problem for each variable of an environment (see [os.Environ]) that begins with ERRAND_, or is one
// of the CLI's or a former one, and that is not a setting, with the name that was probably meant. It reveals no values.
func Unknown(environ []string) (list []Problem) {
	var known []string
	for _, s := range new(Config).settings() {
		known = append(known, s.name)
	}
	for _, variable := range environ {
		name, _, _ := strings.Cut(variable, "=")
		remedy, gone := removed[name]
		ours := gone || strings.HasPrefix(name, "ERRAND_")
		if !ours || slices.Contains(known, name) || slices.Contains(ofRuns, name) {
			continue
		}
		if meant := spelling.Nearest(name, known); !gone && meant != "" {
			remedy = "did you mean " + meant + "?"
		} else if !gone {
			remedy = "remove it; docs/settings.md lists the settings"
		}
		list = append(list, Problem{Where: name, What: "is not a setting of errand and has no effect", Remedy: remedy})
	}
	slices.SortFunc(list, func(a, b Problem) int { return strings.Compare(a.Where, b.Where) })
	return list
}
