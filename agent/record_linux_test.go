package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

var (
	recordFlag = flag.Bool("record", false, "write what the CLI says in TestCLIErrors to testdata/errors/<its version>")
	claudeFlag = flag.String("claude", "", "CLI for TestCLIErrors instead of the pinned one")
)

// Failures as the real CLI reports them: with -record, or with another CLI, all that a model server can cause. With
// -record the words of the CLI are kept for TestRecordedErrors, which shows for the pinned version what the others come
// to.
func TestCLIErrors(t *testing.T) {
	t.Parallel()
	for _, sc := range scenarios() {
		if !sc.live && !*recordFlag && *claudeFlag == "" {
			continue
		}
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			model := newModel(t, sc.turns...)
			var s Spec
			var cli string
			r := newCLI(t, model, func(c *Config) {
				cli = cmp.Or(*claudeFlag, c.CLI)
				c.CLI = cli
				s = sc.setup(c)
				if sc.cloud != nil {
					inCloud(t, c, sc.name, *sc.cloud)
				}
				if sc.spoil != "" {
					c.CLI = fake
					c.Env["AGENT_TEST_MODE"], c.Env["AGENT_TEST_SPOIL"], c.Env["AGENT_TEST_CLI"] =
						"spoil", sc.spoil, cli
				}
				c.Getenv = func(name string) string {
					return map[string]string{"PATH": os.Getenv("PATH"), "TZ": "UTC"}[name]
				}
			})
			out, err := exec.Command(cli, "--version").Output()
			if err != nil {
				t.Fatal(err)
			}
			version := version.FindString(string(out))
			s.Dir, s.Limit = t.TempDir(), time.Minute
			ctx, stop := context.WithCancelCause(t.Context())
			res, err := r.Run(ctx, s, sc.host(t, s.ID, func() { stop(errors.New("enough")) }))
			if err != nil {
				t.Fatal(err)
			}
			sc.check(t, version, res)
			if t.Failed() {
				log, _ := os.ReadFile(r.logPath(s.ID, ".log"))
				t.Logf("log:\n%s", log)
			}
			if *recordFlag {
				record(t, r.logPath(s.ID, ".ndjson"),
					filepath.Join("testdata", "errors", version, sc.name+".ndjson"), res)
			}
		})
	}
}

// record writes a fixture: the lines of a raw log that tell how the run failed, then the CLI's last words and its end.
func record(t *testing.T, raw, fixture string, res Result) {
	t.Helper()
	log, err := os.ReadFile(raw)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	in := json.NewEncoder(&out)
	in.SetEscapeHTML(false)
	put := func(v any) {
		if err := in.Encode(v); err != nil {
			t.Fatal(err)
		}
	}
	for line := range strings.Lines(string(log)) {
		var l map[string]any
		if json.Unmarshal([]byte(line), &l) != nil {
			t.Fatalf("not JSON: %s", line)
		}
		if l = telling(l); l != nil {
			put(l)
		}
	}
	put(map[string]any{"stderr": res.Stderr, "exit": res.ExitCode, "signal": res.Signal})
	if err := os.MkdirAll(filepath.Dir(fixture), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(fixture, []byte(scrub(out.String())), 0o600); err != nil {
		t.Fatal(err)
	}
}

// kept is, per kind of line, what of it a fixture has. The rest is long, differs from run to run, or tells nothing
// about failures.
var kept = map[string][]string{
	"system/init": {"type", "subtype", "session_id", "model", "claude_code_version", "sandbox_enabled"},
	"system/api_retry": {
		"type", "subtype", "session_id", "attempt", "max_retries", "error_status", "error",
	},
	"system/session_state_changed": {"type", "subtype", "session_id", "state"},
	"assistant": {
		"type", "session_id", "parent_tool_use_id", "message", "error", "is_api_error_message", "api_error_status",
		"api_error_type", "api_error", "aborted",
	},
	"rate_limit_event": {"type", "session_id", "rate_limit_info"},
	"control_response": {"type", "response"},
	"result": {
		"type", "subtype", "session_id", "is_error", "api_error_status", "api_error_type", "api_error",
		"terminal_reason", "stop_reason", "num_turns", "total_cost_usd", "result", "errors", "startup_failure_reason",
		"invalid_config_file", "result_index", "begun_message_ids",
	},
	"message":  {"id", "model", "role", "type", "content", "stop_reason"}, // of an assistant
	"response": {"subtype", "request_id"},                                 // of a control_response
}

// telling cuts a line down to what it tells about the run's end; nil when that is nothing.
func telling(l map[string]any) map[string]any {
	kind, _ := l["type"].(string)
	if sub, ok := l["subtype"].(string); ok && kind == "system" {
		kind += "/" + sub
	}
	if kept[kind] == nil {
		return nil
	}
	short := pick(l, kept[kind])
	for _, inner := range []string{"message", "response"} {
		if m, ok := short[inner].(map[string]any); ok {
			short[inner] = pick(m, kept[inner])
		}
	}
	return short
}

func pick(m map[string]any, keys []string) map[string]any {
	short := map[string]any{}
	for _, k := range keys {
		if v, ok := m[k]; ok {
			short[k] = v
		}
	}
	return short
}

// changing is what differs from run to run: identifiers, ports, directories, times of day. The unknown session of the
// scenario stays.
var changing = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|(msg|req|toolu)_[A-Z0-9]{20,}|127\.0\.0\.1:\d{2,}|/tmp/[A-Za-z0-9_./-]+|\.corrupted\.\d+`)

// scrub gives everything that changes a number in order of its appearance, so that what was equal stays equal.
func scrub(s string) string {
	seen := map[string]string{}
	return changing.ReplaceAllStringFunc(s, func(found string) string {
		if seen[found] == "" {
			n := len(seen) + 1
			switch kind, _, id := strings.Cut(found, "_"); {
			case strings.HasPrefix(found, "00000000-"):
				seen[found] = found
			case strings.HasPrefix(found, "127."):
				seen[found] = "127.0.0.1:1"
			case strings.HasPrefix(found, "/"):
				seen[found] = fmt.Sprintf("/run/%d", n)
			case strings.HasPrefix(found, "."):
				seen[found] = ".corrupted.0"
			case id:
				seen[found] = fmt.Sprintf("%s_%d", kind, n)
			default:
				seen[found] = fmt.Sprintf("00000000-0000-4000-8000-%012d", n)
			}
		}
		return seen[found]
	})
}

// check compares what a run came to with what the scenario wants.
func (sc scenario) check(t *testing.T, version string, res Result) {
	t.Helper()
	want := sc.want
	if version == oldCLI {
		want = cmp.Or(sc.old, want)
	}
	var class Class
	if res.Error != nil {
		class = res.Error.Class
	}
	if res.Outcome != sc.as || class != want && (sc.or == "" || class != sc.or) {
		t.Errorf("outcome %s, error %+v, exit %d %s; want %s %s", res.Outcome, res.Error, res.ExitCode,
			res.Signal, sc.as, want)
	}
	if sc.cloud != nil && res.Error != nil && res.Error.User != NewError(class, "").User {
		t.Errorf("people are told: %s", res.Error.User)
	}
	if res.Text != sc.text || res.Error != nil && (res.Error.Message == "" || res.Error.User == "" ||
		res.Error.Remedy == "") {
		t.Errorf("text %q, error %+v", res.Text, res.Error)
	}
	if class == ClassUsageLimit && !res.RetryAt.IsZero() { // the recorded reset is in the year 2100: see TestReset
		t.Errorf("resets at %v", res.RetryAt)
	}
}
