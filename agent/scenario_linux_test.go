package agent

import (
	"maps"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/errand-fleet/errand/internal/fake/modelfake"
)

// scenario is one way for a run to fail. It is provoked with the real CLI (TestCLIErrors -record, which records what
// the CLI says) and replayed from the recording (TestRecordedErrors).
type scenario struct {
	name  string
	live  bool              // provoked each time: more than the pinned CLI's words decides how it ends
	cloud *refusal          // what a cloud answers, whose name is the beginning of name; not recorded of oldCLI
	turns []modelfake.Turn  // what the model does; none: nothing is ever asked of it
	env   map[string]string // of the CLI, beside what setup says
	spoil string            // what is done to the CLI just before it starts: see agenttest/fakecli
	spec  func(*Spec)
	cfg   func(*Config)

	stop   bool           // the caller stops the run as soon as the agent works
	signal syscall.Signal // sent to the CLI as soon as the agent works

	as   Outcome // Failed, unless set
	want Class   // of the error
	old  Class   // instead of want in oldCLI, where that says less
	or   Class   // what also counts, where the CLI may be quicker than its own last words
	text string  // the answer, for a run that is Done
}

// Turns of a model that does not answer.
func status(code int, message string, header ...string) []modelfake.Turn {
	t := modelfake.Turn{Status: code, Message: message, Header: http.Header{}}
	for i := 0; i < len(header); i += 2 {
		t.Header.Set(header[i], header[i+1])
	}
	return []modelfake.Turn{t}
}

func bash(command string) modelfake.Turn {
	return modelfake.Turn{Tools: []modelfake.ToolCall{{Name: "Bash", Input: map[string]string{"command": command}}}}
}

func scenarios() []scenario {
	hang := []modelfake.Turn{{Text: "half an answer", Hang: true}}
	var list []scenario
	add := func(s scenario) {
		if s.as == "" {
			s.as = Failed
		}
		list = append(list, s)
	}
	add(scenario{name: "answer", turns: []modelfake.Turn{{Text: "Done so."}}, as: Done, text: "Done so."})
	// What the model's API answers.
	add(scenario{name: "400", turns: status(400, "tools.0: unknown field"), want: ClassRequest})
	add(scenario{
		name: "400-credit", turns: status(400, "Your credit balance is too low to access the Anthropic API."),
		want: ClassBilling,
	})
	add(scenario{
		name: "400-too-long", turns: status(400, "prompt is too long: 2000000 tokens > 1000000 maximum"),
		want: ClassContext,
	})
	add(scenario{name: "401", turns: status(401, "invalid x-api-key"), want: ClassAuth})
	add(scenario{
		name: "401-retried", turns: status(401, "invalid x-api-key"),
		env: map[string]string{"CLAUDE_CODE_MAX_RETRIES": "10"}, want: ClassAuth,
	})
	add(scenario{name: "402", turns: status(402, "payment required"), want: ClassBilling})
	add(scenario{name: "403", turns: status(403, "not for you"), want: ClassAuth})
	add(scenario{
		name: "404", turns: status(404, "model: no-such-model"), spec: func(s *Spec) { s.Model = "no-such-model" },
		want: ClassModel,
	})
	add(scenario{name: "413", turns: status(413, "request exceeds the maximum size"), want: ClassContext})
	add(scenario{name: "429", turns: status(429, "slow down"), want: ClassRateLimit})
	add(scenario{name: "429-retry-after", turns: status(429, "slow down", "Retry-After", "3600"), want: ClassRateLimit})
	add(scenario{
		name: "429-usage-limit", want: ClassUsageLimit,
		turns: status(429, "This request would exceed your account's rate limit.", "anthropic-ratelimit-unified-status",
			"rejected",
			"anthropic-ratelimit-unified-reset", "4102444800", "anthropic-ratelimit-unified-representative-claim",
			"five_hour"),
		cfg: func(c *Config) { c.Credential = Credential{OAuthToken: "sk-ant-oat01-test-credential"} },
	})
	add(scenario{name: "500", turns: status(500, "oops"), want: ClassOverloaded})
	add(scenario{name: "503", turns: status(503, "gone for lunch"), want: ClassOverloaded})
	add(scenario{name: "529", turns: status(529, "Overloaded"), want: ClassOverloaded})
	// The way there.
	add(scenario{
		name: "connection-refused", cfg: func(c *Config) { c.BaseURL = "http://127.0.0.1:1" }, want: ClassOverloaded,
	})
	add(scenario{
		name: "request-timeout", turns: []modelfake.Turn{{Gate: make(chan struct{})}},
		env: map[string]string{"API_TIMEOUT_MS": "500"}, want: ClassOverloaded,
	})
	add(scenario{
		name: "stream-cut", turns: []modelfake.Turn{{Text: "half an answer", Cut: true}}, want: ClassOverloaded,
		env: map[string]string{"CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK": "1"},
	})
	add(scenario{
		name: "stream-cut-once", turns: []modelfake.Turn{{Text: "Done so.", Cut: true}}, as: Done, text: "Done so.",
	})
	add(scenario{name: "no-credential", cfg: func(c *Config) { c.Credential = Credential{} }, want: ClassAuth})
	// The agent's own limits.
	refusal := modelfake.Turn{Text: "I cannot", Stop: "refusal"}
	// the CLI asks once more
	add(scenario{name: "refusal", turns: []modelfake.Turn{refusal, refusal}, want: ClassRefusal})
	add(scenario{
		name: "max-turns", turns: []modelfake.Turn{bash("true"), bash("true"), bash("true")},
		env: map[string]string{"CLAUDE_CODE_MAX_TURNS": "1"}, want: ClassMaxTurns,
	})
	add(scenario{
		name: "budget", live: true, want: ClassBudget,
		turns: []modelfake.Turn{
			{Tools: bash("true").Tools, Usage: modelfake.Usage{Input: 1_000_000, Output: 1000}}, {Text: "x"},
		},
		spec: func(s *Spec) { s.MaxUSD = 0.01 },
		cfg:  func(c *Config) { c.Direct = true }, // otherwise the gateway ends the run
	})
	var wrong []modelfake.Turn
	for range 12 {
		wrong = append(wrong, call("StructuredOutput", "no", "grade"))
	}
	add(scenario{
		name: "schema", live: true, turns: wrong, want: ClassSchema,
		spec: func(s *Spec) {
			s.Schema = []byte(`{"type":"object","properties":{"grade":{"type":"integer"}},"required":["grade"]}`)
		},
	})
	// A CLI that refuses to start.
	add(scenario{name: "unknown-flag", spoil: "flag", want: ClassConfig})
	add(scenario{name: "unknown-session", spoil: "session", want: ClassSession})
	add(scenario{name: "no-directory", live: true, spoil: "directory", want: ClassWorkspace, old: ClassConfig})
	add(scenario{name: "broken-config", live: true, spoil: "config", want: ClassConfig})
	add(scenario{name: "broken-input", spoil: "input", want: ClassInternal})
	add(scenario{
		name: "broken-proxy", env: map[string]string{"HTTPS_PROXY": "not a proxy"}, want: ClassConfig,
		old: ClassNoResult,
	})
	if os.Geteuid() == 0 { // only root is refused
		add(scenario{name: "bypass-root", spoil: "bypass", want: ClassConfig})
	}
	// Ends from outside.
	add(scenario{name: "stopped", turns: hang, stop: true, as: Stopped})
	add(scenario{name: "int", live: true, turns: hang, signal: syscall.SIGINT, want: ClassKilled, or: ClassNoResult})
	add(scenario{name: "term", turns: hang, signal: syscall.SIGTERM, want: ClassKilled})
	add(scenario{name: "kill", turns: hang, signal: syscall.SIGKILL, want: ClassKilled})
	// A tool that kills its parent, as a careless pkill does (claude-code#45717, #94469); its own shell outlives the
	// CLI.
	add(scenario{
		name: "kill-by-tool", live: true, turns: []modelfake.Turn{bash("kill -KILL $PPID; tail -f /dev/null")}, want: ClassKilled,
	})
	add(scenario{
		name: "term-by-tool", turns: []modelfake.Turn{bash("kill $PPID; tail -f /dev/null")}, want: ClassKilled,
	})
	for name, r := range refusals {
		add(scenario{name: name, live: r.live, cloud: &r, want: r.class})
	}
	return list
}

// setup is what a run of the scenario is made of.
func (sc scenario) setup(c *Config) Spec {
	c.Env = map[string]string{"CLAUDE_CODE_MAX_RETRIES": "0"} // ten of them take three minutes
	maps.Copy(c.Env, sc.env)
	if sc.cfg != nil {
		sc.cfg(c)
	}
	s := Spec{ID: unique("error-" + sc.name), Prompt: Message{Text: "do it"}, Profile: Write}
	if sc.spec != nil {
		sc.spec(&s)
	}
	return s
}

// host does to the run what the scenario wants done.
// No event tells people what the CLI says for its makers.
func (sc scenario) host(t *testing.T, id string, stop func()) *host {
	return &host{
		permit: func(ToolRequest) Decision { return Decision{Allow: true} },
		on: func(e Event) {
			if strings.Contains(e.Text, "[ede_diagnostic]") || sc.stop && e.Kind == TurnEnd && e.Error {
				t.Errorf("event %+v", e)
			}
			if e.Kind != Started {
				return
			}
			if sc.stop {
				stop()
			}
			if sc.signal != 0 {
				for _, pid := range marked(id) {
					_ = syscall.Kill(pid, sc.signal)
				}
			}
		},
	}
}
