// Package peers tests errand and its fakes with other projects' programs: Slack's own framework as an app of the fake
// workspace; real webhooks, signed by GitHub's own library, at the front door; and a worker's traces at the OpenTelemetry
// Collector's receiver. `make peers` installs them and runs the tests. ARGS=-update rewrites the golden files.
package peers

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// patience bounds each wait. Node takes a second to start, on a busy machine ten.
const patience = time.Minute

func limited(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	t.Cleanup(cancel)
	return ctx
}

// run starts a program that ends with the test and returns what its first line of output says, decoded from JSON or,
// with a prefix, what follows that.
func run(t *testing.T, env []string, prefix string, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "TMPDIR=" + os.TempDir()}, env...)
	said := &strings.Builder{}
	cmd.Stderr = said
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", name, err)
	}
	drained := make(chan struct{})
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		kill := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
		<-drained
		_ = cmd.Wait() // a program of Node's has no orderly end
		kill.Stop()
		if t.Failed() {
			t.Logf("%s said:\n%s", filepath.Base(name), said)
		}
	})
	first := make(chan string, 1)
	go func() {
		defer close(drained)
		defer close(first)
		lines := bufio.NewScanner(out)
		found := false
		for lines.Scan() {
			if rest, ok := strings.CutPrefix(strings.TrimSpace(lines.Text()), prefix); ok && !found {
				found = true
				first <- strings.TrimSpace(rest)
			}
		}
	}()
	select {
	case line, ok := <-first:
		if !ok {
			t.Fatalf("%s ended before it was up", name)
		}
		return line
	case <-limited(t).Done():
		t.Fatalf("%s did not get up", name)
	}
	return ""
}

// node starts one of the programs here and decodes its first line.
func node(t *testing.T, env []string, program, script string, up any) {
	t.Helper()
	line := run(t, env, "{", program, script)
	if err := json.Unmarshal([]byte("{"+line), up); err != nil {
		t.Fatal(err)
	}
}
