package sandbox

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// If a run cannot have its own network, it shares the machine's, and the log says so once.
func TestOwnNetworkIsImpossible(t *testing.T) {
	t.Parallel()
	var logged strings.Builder
	b := New(Config{Enabled: true, Log: slog.New(slog.NewTextHandler(&logged, nil))})
	for range 2 {
		if own, unavailable := b.hasOwnNetwork(t.Context(), bubblewrap{path: "/bin/false"}); own || unavailable != nil {
			t.Errorf("it is thought possible, or unknown: %v", unavailable)
		}
	}
	if n := strings.Count(logged.String(), "egress list is not in force"); n != 1 {
		t.Errorf("logged %d times:\n%s", n, logged.String())
	}
}

// A machine that is too busy to find out does not open a run's network, and its sandbox is not called broken.
func TestBusyMachine(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "bwrap")
	syscall.ForkLock.RLock() // a child forked meanwhile would hold the file open for writing
	err := os.WriteFile(program, []byte("#!/bin/sh\nexec sleep 1000\n"), 0o700)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	var logged strings.Builder
	log := slog.New(slog.NewTextHandler(&logged, nil))
	b := New(Config{Enabled: true, Log: log, Find: func() string { return program }})
	b.program.Limit, b.network.Limit = 100*time.Millisecond, 100*time.Millisecond
	own, unavailable := b.hasOwnNetwork(t.Context(), bubblewrap{path: program})
	if own || unavailable == nil || !unavailable.Busy || logged.Len() > 0 {
		t.Errorf("own network %t, %v, log %s", own, unavailable, &logged)
	}
	if _, unavailable := b.Path(t.Context()); unavailable == nil || !unavailable.Busy ||
		strings.Contains(unavailable.Remedy, "namespaces") {
		t.Errorf("%+v", unavailable)
	}
}

// What bubblewrap prints last says what to change, however much it prints before. People read the first of it.
func TestRemedyAfterALongOutput(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "bwrap")
	script := "#!/bin/sh\nprintf '%0400d; mount proc' 0 >&2\nexit 1\n"
	syscall.ForkLock.RLock() // a child forked meanwhile would hold the file open for writing
	err := os.WriteFile(program, []byte(script), 0o700)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	b := New(Config{Enabled: true, Find: func() string { return program }})
	_, unavailable := b.Path(t.Context())
	if unavailable == nil || !strings.Contains(unavailable.Remedy, "systempaths=unconfined") ||
		strings.Contains(unavailable.Problem, "mount proc") {
		t.Errorf("%+v", unavailable)
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

// Where overlays are impossible, the directory below is copied once, and the copy keeps the run's changes.
func TestLayerWithoutOverlays(t *testing.T) {
	t.Parallel()
	var logged strings.Builder
	b := New(Config{
		Enabled: true, Log: slog.New(slog.NewTextHandler(&logged, nil)),
		CheckOverlays: func(context.Context, string) error { return errors.New("forbidden") },
	})
	root := t.TempDir()
	l := Layer{Lower: filepath.Join(root, "lower"), Changes: filepath.Join(root, "changes")}
	file := filepath.Join(l.Lower, "a", "file")
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755),
		os.WriteFile(file, []byte("old"), 0o644)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"old", "new"} {
		overlay, shown, err := b.layer(t.Context(), l)
		if err != nil || overlay != nil || shown != l.Upper() {
			t.Fatal(overlay, shown, err)
		}
		copied := filepath.Join(shown, "a", "file")
		if text, err := os.ReadFile(copied); string(text) != want {
			t.Errorf("%q %v, want %q", text, err, want)
		}
		if err := os.WriteFile(copied, []byte("new"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if text, _ := os.ReadFile(file); string(text) != "old" {
		t.Errorf("the directory below has %q", text)
	}
	if n := strings.Count(logged.String(), "forbidden"); n != 1 {
		t.Errorf("logged %d times:\n%s", n, logged.String())
	}
}

// A configuration in /dev/null does not make that a file that no run may open.
func TestDevicesStay(t *testing.T) {
	t.Parallel()
	b := New(Config{Hidden: []string{os.DevNull}})
	all, err := b.mounts(Run{Program: "/bin/sh", Root: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		if m.at == os.DevNull {
			t.Errorf("%+v", m)
		}
	}
}
