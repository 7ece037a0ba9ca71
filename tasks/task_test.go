package tasks

import (
	"strings"
	"testing"
	"time"
)

func TestNewID(t *testing.T) {
	t.Parallel()
	at := time.UnixMicro(1_700_000_000_123_456)
	for identity, want := range map[string]string{
		"C0ABC":                  "1700000000123456-slack-c0abc",
		"../../etc/passwd":       "1700000000123456-slack-..-..-etc-passwd",
		"ünï code":               "1700000000123456-slack--n-code",
		strings.Repeat("x", 200): "1700000000123456-slack-" + strings.Repeat("x", 57),
	} {
		got := NewID(at, "slack", identity)
		if got != want || !ValidID(got) || len(got) > 80 {
			t.Errorf("NewID(%q) = %q, valid %v; want %q", identity, got, ValidID(got), want)
		}
	}
	for _, bad := range []string{
		"", "x", "1700000000123456", "1700000000123456-Slack-x", "1700000000123456-slack-x/y",
		"1700000000123456-slack-x\n", strings.Repeat("1", 90),
	} {
		if ValidID(bad) {
			t.Errorf("%q is valid", bad)
		}
	}
}

// A title is the first line, safe to show, and begins like a sentence.
func TestTitle(t *testing.T) {
	t.Parallel()
	for prompt, want := range map[string]string{
		"  fix the flaky test\nplease": "Fix the flaky test", "go.mod is old": "go.mod is old", "": "", "a\tb c": "A b c",
		"fix \x1b[31mit\u202e":   `Fix it\u202e`,
		"\x1b[31m\nfix it":       "Fix it",
		strings.Repeat("a ", 60): "A " + strings.Repeat("a ", 48) + "a…",
	} {
		if got := (Task{Prompt: prompt}).Title(); got != want {
			t.Errorf("%q is titled %q, want %q", prompt, got, want)
		}
	}
}

// A subject is a title without what nobody sees.
func TestSubject(t *testing.T) {
	t.Parallel()
	for prompt, want := range map[string]string{
		"name it \u2068Dana’s phone\u2069\nplease": "Name it Dana’s phone", "\u200ffix\u202e it": "Fix it", "": "",
		"fix \x1b[31mit\x1b[0m now": "Fix it now", "\u2068\u2069\n\u200e \u200e\nfix it": "Fix it",
	} {
		if got := (Task{Prompt: prompt}).Subject(); got != want {
			t.Errorf("%q has the subject %q, want %q", prompt, got, want)
		}
	}
}
