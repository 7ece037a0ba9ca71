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
