package tools

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/errand-fleet/errand/agent/internal/redact"
)

func TestDescribe(t *testing.T) {
	t.Parallel()
	redactor := redact.New("a-known-secret", "two\nlines-of-it")
	long := strings.Repeat("x", 200)
	for _, c := range []struct{ tool, input, want string }{
		{"Read", `{"file_path":"/w/agent/run.go"}`, "Reading agent/run.go"},
		{"Read", `{"file_path":"/etc/passwd"}`, "Reading /etc/passwd"},
		{"Edit", `{"old_string":"x","file_path":"run.go"}`, "Editing run.go"},
		{"NotebookEdit", `{"notebook_path":"/w/a.ipynb"}`, "Editing a.ipynb"},
		{"Bash", `{"command":"go test\n  ./..."}`, "Running go test ./..."},
		{"Bash", `{"command":"` + long + `"}`, "Running " + long[:71] + "…"},
		{"Bash", `{"command":"\u001b[31mls\u202e \u0000-a\r\n"}`, "Running [31mls -a"},
		{"Bash", `{"command":"echo a-known-secret"}`, "Running echo [redacted]"},
		{"Bash", `{"command":"echo ` + long[:60] + ` a-known-secret"}`, "Running echo " + long[:60] + " [reda…"},
		{"Bash", `{"command":"echo a-known\u200b-secret"}`, "Running echo [redacted]"},
		{"Bash", `{"command":"echo 'two\nlines-of-it'"}`, "Running echo '[redacted]'"},
		{"Bash", `{"command":7}`, "Running"},
		{"Grep", `{}`, "Searching for"},
		{"Agent", `{"description":"Look around","prompt":"…"}`, "Delegating: Look around"},
		{"WebFetch", `{"url":"https://example.org/x"}`, "Fetching https://example.org/x"},
		{"mcp__errand__ask_user", `{"question":"?"}`, "Asking a question"},
		{"mcp__errand__post_update", `{}`, "Posting an update"},
		{"mcp__errand__read_thread", ``, "Reading the thread"},
		{"mcp__errand__attach_file", `{"path":"/w/out/a.png"}`, "Attaching out/a.png"},
		{"mcp__tracker__find_issue", `{}`, "Using tracker find_issue"},
		{"Novelty", `not json`, "Using Novelty"},
		{"Nov\u202eel\x1bty" + long, `{}`, "Using Novelty" + long[:66] + "…"},
	} {
		if got := Describe(redactor, "/w", c.tool, []byte(c.input)); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.tool, c.input, got, c.want)
		}
	}
}

func FuzzDescribe(f *testing.F) {
	const secret = "a-known-secret"
	redactor := redact.New(secret)
	f.Add("Bash", []byte(`{"command":"`+secret+`"}`))
	f.Add(secret, []byte(nil))
	f.Fuzz(func(t *testing.T, name string, input []byte) {
		got := Describe(redactor, "/w", name, input)
		if utf8.RuneCountInString(got) > describeWidth || strings.Contains(got, secret) ||
			strings.ContainsFunc(got, unicode.IsControl) {
			t.Errorf("%q %q: %q", name, input, got)
		}
	})
}

// Every tool of a profile is in the catalog, and neutral names are unique.
func TestCatalog(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for name, c := range catalog {
		if c.neutral == "" || c.verb == "" {
			t.Errorf("%s has no neutral name, or no verb", name)
		}
		if twin, ok := seen[c.neutral]; ok {
			t.Errorf("%s and %s are both %s", name, twin, c.neutral)
		}
		seen[c.neutral] = name
		if _, ok := catalog[c.neutral]; ok {
			t.Errorf("%s: its neutral name %s is another tool's", name, c.neutral)
		}
	}
	for profile, names := range builtIn {
		for _, name := range names {
			c, ok := catalog[name]
			if !ok {
				t.Errorf("%s is not in the table", name)
			}
			if profile != Write && !c.reads && name != "Skill" { // which is text there
				t.Errorf("%s gives an agent that only reads %s", profile, name)
			}
		}
	}
}
