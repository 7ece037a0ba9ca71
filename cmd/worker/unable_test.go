package main

import (
	"bufio"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/cmd/internal/assemble"
	"github.com/errand-fleet/errand/internal/await"
)

// One of two workers has no CLI. The other runs every task and none fails. The broken worker shows problem and remedy
// in its log, its probes and the fleet's health.
func TestWorkerWithoutACLI(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	front := w.frontDoor()
	good := maps.Clone(w.env)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	missing := filepath.Join(t.TempDir(), "claude")
	w.env["ERRAND_CLAUDE"], w.env["ERRAND_WORKER_ADDR"] = missing, addr
	line := w.processLog("cannot run tasks")
	for _, want := range []string{`"level":"ERROR"`, "takes none", missing, "ERRAND_CLAUDE"} {
		if !strings.Contains(line, want) {
			t.Errorf("%s is not in the log: %s", want, line)
		}
	}
	var out strings.Builder
	in := invocation{[]string{"healthcheck"}, w.getenv, &out, &out}
	if code := run(t.Context(), in, assemble.Options{}); code != 1 ||
		!strings.Contains(out.String(), "must install it") {
		t.Errorf("healthcheck exits with %d: %s", code, out.String())
	}
	if got, _ := w.read("http://"+addr+"/livez", ""); got != http.StatusOK {
		t.Errorf("/livez is %d", got)
	}
	if status, text := w.read(front+"/api/health", token); status != http.StatusServiceUnavailable ||
		!strings.Contains(text, "no worker can run tasks") {
		t.Errorf("health is %d: %s", status, text)
	}
	first := w.mention("task 0", "")
	w.says(first, "No worker can run tasks: the worker has no Claude Code CLI.")

	w.env = good
	w.process()
	roots := []string{first}
	for n := range 8 {
		roots = append(roots, w.mention(fmt.Sprintf("task %d", n+1), ""))
	}
	for _, root := range roots {
		if final := w.answers(root, 1); strings.Contains(final[0], "CLI") {
			t.Errorf("final message: %s", final)
		}
	}
	if list := w.get(front + "/api/tasks?ending=answered"); strings.Count(list, `"kind": "answered"`) != len(roots) {
		t.Errorf("tasks: %s", list)
	}
}

// The first line of a standalone start says that tasks cannot run and what to do. Once the CLI is in place, they run.
func TestStandaloneWithoutACLI(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cli := w.env["ERRAND_CLAUDE"]
	dir, err := os.MkdirTemp("/var/tmp", "we") //nolint:usetesting // a sandbox replaces what is below /tmp
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	w.env["ERRAND_CLAUDE"] = filepath.Join(dir, "claude")
	lines := w.start()
	var head []string
	base := ""
	for base == "" && lines.Scan() {
		head = append(head, lines.Text())
		if url, ok := strings.CutPrefix(strings.TrimSpace(lines.Text()), "console"); ok {
			base, _, _ = strings.Cut(strings.TrimSpace(url), "/login?")
		}
	}
	go func() {
		for lines.Scan() { // to the end, so that it does not block
		}
	}()
	text := strings.Join(head, "\n")
	if strings.Contains(text, "is up") || !strings.HasPrefix(text, "errand cannot run tasks:") ||
		!strings.Contains(text, "remedy   run npm ci") {
		t.Errorf("got: %s", text)
	}
	w.slack.Deliver(base + "/slack/events")
	root := w.mention("hello", "")
	w.says(root, "No worker can run tasks")
	if err := os.Symlink(cli, w.env["ERRAND_CLAUDE"]); err != nil {
		t.Fatal(err)
	}
	w.answers(root, 1)
}

// processLog starts a worker process, like process, and returns the first line of its log that contains these words.
func (w *world) processLog(words string) string {
	w.Helper()
	r, out, err := os.Pipe()
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = r.Close() })
	w.processTo(out)
	_ = out.Close()
	found := make(chan string, 1)
	go func() {
		for log := bufio.NewScanner(r); log.Scan(); { // to the end, so that the worker does not block
			if strings.Contains(log.Text(), words) {
				select {
				case found <- log.Text():
				default:
				}
			}
		}
	}()
	select {
	case line := <-found:
		return line
	case <-time.After(await.Bound):
		w.Fatalf("the worker does not log %q", words)
		return ""
	}
}
