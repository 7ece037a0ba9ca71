package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/bench/fakecli"
	"github.com/errand-fleet/errand/bench/session"
	"github.com/errand-fleet/errand/bench/table"
)

func TestMain(m *testing.M) {
	agent.KeeperMain()
	play(os.Getenv(fakecli.RoleVariable))
	os.Exit(m.Run())
}

// All is measured, in small; how fast it is here says nothing, but nothing may be lost or left behind.
func TestQuick(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var out, progress bytes.Buffer
	profile := filepath.Join(t.TempDir(), "cpu")
	args := []string{"-quick", "-sdk=false", "-dir", dir, "-cpuprofile", profile}
	if code := table.Run(t.Context(), args, &out, &progress, parse, measure); code != 0 {
		t.Fatalf("exit %d: %s", code, progress.String())
	}
	t.Logf("\n%s", out.String())
	for _, row := range []string{
		`session of 5 MB in \d+ lines`, `cat > file +[\d.]+ s`, `errand +[\d.]+ s .* - .* MB`,
		`peak RSS .* <= 64.0 MB`, `PSS of .* keeper.* <= 1.5 MB`, `what a run adds .* <= 8.0 ms`,
		`heap and stacks of an idle run .* <= 250 KB +PASS`, `goroutines of an idle run +[56] +<= 6 +PASS`,
		`not in the logs, in their order +0 +<= 0 +PASS`, `leader killed, .* <= 100 ms`, `worker killed, .* <= 8.0 s`,
	} {
		if !regexp.MustCompile(row).Match(out.Bytes()) {
			t.Errorf("the table has no row like %s", row)
		}
	}
	if strings.Contains(out.String(), "multiple of the SDK") {
		t.Error("the table judges by an SDK that was not measured")
	}
	if info, err := os.Stat(profile); err != nil || info.Size() == 0 {
		t.Errorf("no profile was written: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
}

// The benchmark requires complete work: each line is decoded, and without secrets in the raw log, which has no pieces.
func TestTheWholeSessionIsRead(t *testing.T) {
	t.Parallel()
	b := &bench{dir: t.TempDir()}
	path, lines, err := b.writeSession("session.ndjson", 3<<20)
	if err != nil {
		t.Fatal(err)
	}
	runner, err := newRunner(order{Dir: b.dir, Grace: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	events := map[agent.Kind]int{}
	res, err := runner.Run(t.Context(), spec("whole", "replay "+path), host{event: func(e agent.Event) {
		events[e.Kind]++
	}})
	if err != nil {
		t.Fatal(err)
	}
	if r := res.Resources; res.Outcome != agent.Done || r.Lines != lines+1 || r.Raw+r.Cut > 0 || len(r.Unknown) > 0 {
		t.Errorf("%s with %+v, want %d lines", res.Outcome, r, lines+1)
	}
	for _, kind := range []agent.Kind{
		agent.Started, agent.Text, agent.Thinking, agent.ToolUse, agent.ToolResult, agent.TurnEnd,
	} {
		if events[kind] == 0 {
			t.Errorf("no event of the kind %s", kind)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range session.Secrets() {
		want = bytes.ReplaceAll(want, []byte(secret), []byte("[redacted]"))
	}
	want = regexp.MustCompile(`(?m)^{"type":"stream_event".*"content_block_delta".*\n`).ReplaceAll(want, nil)
	raw, err := os.ReadFile(filepath.Join(b.dir, "whole.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	if _, got, _ := bytes.Cut(raw, []byte("\n")); !bytes.Equal(got, want) { // without the answer to initialize
		t.Errorf("the raw log has %d bytes, want the session's %d, redacted", len(got), len(want))
	}
}

func TestLostLinesAreNoticed(t *testing.T) {
	t.Parallel()
	line := func(n int) string { return "             " + fakecli.Number(n) }
	for _, c := range []struct {
		name string
		log  string
		want int
	}{
		{"all", "00:00:00.000 line 1 of many\n00:00:01.000 ! news\n" + line(2) + line(3), 3},
		{"none", "", 0},
		{"one lost", line(1) + line(3), 1},
		{"one twice", line(1) + line(1) + line(2), 1},
		{"out of order", line(2) + line(1), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "log")
			if err := os.WriteFile(path, []byte(c.log), 0o600); err != nil {
				t.Fatal(err)
			}
			if got, err := inOrder(path); err != nil || got != c.want {
				t.Errorf("%d lines in order (%v), want %d", got, err, c.want)
			}
		})
	}
}

// A contender that is not there, or that does not read everything, must not get a place in the table.
func TestOnlyWhoReadsAllIsMeasured(t *testing.T) {
	t.Parallel()
	var out, problem bytes.Buffer
	if code := table.Run(t.Context(), []string{"-quick", "-only", "stream", "-root", t.TempDir(), "-dir", t.TempDir()},
		&out, &problem, parse, measure); code != 1 {
		t.Errorf("exit %d without an SDK", code)
	}
	if !strings.Contains(problem.String(), "not installed") || out.Len() > 0 {
		t.Errorf("said %s, printed %s", problem.String(), out.String())
	}
	b := &bench{options: options{Repetitions: 1}, lines: 10, progress: &problem}
	_, err := b.compare(t.Context(), []contender{{"half", func(context.Context) (sample, error) {
		return sample{Lines: 5}, nil
	}}})
	if err == nil || !strings.Contains(err.Error(), "5 of 10 lines") {
		t.Errorf("half of the session was taken for the whole: %v", err)
	}
}

func TestCancelledMeasurementLeavesNothing(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := t.TempDir()
	var out, problem bytes.Buffer
	if code := table.Run(ctx, []string{"-quick", "-sdk=false", "-dir", dir}, &out, &problem,
		parse, measure); code != 1 {
		t.Errorf("exit %d: %s", code, problem.String())
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
}

func TestArguments(t *testing.T) {
	t.Parallel()
	for want, args := range map[int][]string{0: {"-h"}, 2: {"-only", "("}} {
		var out, problem bytes.Buffer
		if code := table.Run(t.Context(), args, &out, &problem, parse, measure); code != want || problem.Len() == 0 {
			t.Errorf("%v: exit %d, want %d; said %s", args, code, want, problem.String())
		}
	}
}
