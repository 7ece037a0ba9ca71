package sandbox

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// If a run cannot have its own network, it shares the machine's, and the log says so once.
func TestOwnNetworkIsImpossible(t *testing.T) {
	t.Parallel()
	var logged strings.Builder
	b := New(Config{Enabled: true, Log: slog.New(slog.NewTextHandler(&logged, nil))})
	for range 2 {
		if b.hasOwnNetwork(t.Context(), "/bin/false") {
			t.Error("it is thought possible")
		}
	}
	if n := strings.Count(logged.String(), "untrusted runs share the network"); n != 1 {
		t.Errorf("logged %d times:\n%s", n, logged.String())
	}
}

func TestMountsInOrder(t *testing.T) {
	t.Parallel()
	got := inOrder([]mount{
		{at: "/", how: "--ro-bind", from: "/"},
		{at: "/s/logs", how: "--tmpfs", blank: true},
		{at: "/s", how: "--tmpfs", blank: true},
		{at: "/s/c/.env", how: "--ro-bind", from: "/dev/null", blank: true},
		{at: "/tmp", how: "--tmpfs", blank: true},
		{at: "/tmp", how: "--bind", from: "/tmp/er-1", blank: true},
		{at: "/tmp/er-0", how: "--tmpfs", blank: true},
		{at: "/opt/cli", how: "--ro-bind", from: "/opt/cli"},
		{at: "/s/m", how: "--ro-bind", from: "/s/m"},
		{at: "/s/c", how: "--bind", from: "/s/c"},
	})
	var at []string
	for _, m := range got {
		at = append(at, m.how+" "+m.at)
	}
	want := []string{"--ro-bind /", "--tmpfs /s", "--bind /s/c", "--ro-bind /s/c/.env", "--ro-bind /s/m", "--bind /tmp"}
	if diff := cmp.Diff(want, at); diff != "" {
		t.Error(diff)
	}
}
