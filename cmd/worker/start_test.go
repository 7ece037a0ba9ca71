package main

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/cmd/internal/assemble"
	"github.com/errand-fleet/errand/config"
	"github.com/errand-fleet/errand/internal/await"
	"github.com/errand-fleet/errand/internal/redisserver/redistest"
)

// admin is a client of the world's Redis with all rights.
func (w *world) admin() *redis.Client {
	w.Helper()
	return redistest.Client(w, w.redis)
}

// logged starts a worker process and reads its log up to a line with this text, or to its end.
func (w *world) logged(words string) (text string) {
	w.Helper()
	r, out, err := os.Pipe()
	if err != nil {
		w.Fatal(err)
	}
	defer r.Close()
	ctx := await.Context(w)
	cmd := exec.CommandContext(ctx, "/proc/self/exe")
	cmd.Args = []string{underTest}
	for k, v := range w.env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	cmd.Stderr = out
	if err := cmd.Start(); err != nil {
		w.Fatal(err)
	}
	_ = out.Close()
	piece := make([]byte, 4<<10)
	for !strings.Contains(text, words) || !strings.HasSuffix(text, "\n") {
		n, err := r.Read(piece)
		if text += string(piece[:n]); err != nil {
			break
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	return text
}

// A worker whose agents could do more than the operator has accepted does not start, or logs what they can do.
func TestStartIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(w *world)
		want   []string
	}{
		"no sandbox": {func(w *world) {
			w.env["ERRAND_SANDBOX"], w.env["PATH"] = "auto", w.TempDir()
		}, []string{"there is no sandbox: bwrap is not on PATH", "ERRAND_SANDBOX=none", agent.Shared.Protects()}},
		"root": {func(w *world) {
			if delete(w.env, "ERRAND_ALLOW_ROOT"); os.Geteuid() != 0 {
				w.env["ERRAND_SANDBOX"], w.env["PATH"] = "auto", "" // so that it does not start either
			}
		}, []string{"worker: configuration: 1 problem\n"}},
		"open Redis": {func(w *world) {
			if err := w.admin().Do(w.Context(), "ACL", "SETUSER", "default", "nopass").Err(); err != nil {
				w.Fatal(err)
			}
		}, []string{"Redis asks for no password", "ERRAND_ALLOW_OPEN_REDIS=true"}},
		"agreed": {func(w *world) {
			w.env["ERRAND_SANDBOX"] = "none"
			w.asApp()
		}, []string{`"posture":"shared"`, agent.Shared.Protects(), "can read the secrets in"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c.change(w)
			logged := w.logged("can read the secrets in")
			for _, want := range c.want {
				if !strings.Contains(logged, want) {
					t.Errorf("%q is missing:\n%s", want, logged)
				}
			}
		})
	}
}

// Without Redis, each line of output is a log line and contains a remedy.
func TestLogWithoutRedis(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env["REDIS_URL"] = "redis://:pw@127.0.0.1:1/0"
	logged := w.logged("failed to dial")
	if !strings.Contains(logged, "127.0.0.1:1") || !strings.Contains(logged, "check that Redis runs") {
		t.Errorf("place or remedy is missing:\n%s", logged)
	}
	for line := range strings.Lines(logged) {
		if !json.Valid([]byte(line)) {
			t.Errorf("no JSON: %s", line)
		}
	}
}

// A Redis that was unreachable at the start is checked before any task is taken: a worker ends if it is open to the
// network.
func TestOpenRedisIsLate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := miniredis.RunT(t)
	addr := m.Addr()
	m.Close()
	w.env["REDIS_URL"] = "redis://" + addr
	r, stderr := io.Pipe()
	code := make(chan int, 1)
	ctx := await.Context(t)
	go func() {
		in := invocation{nil, func(k string) string { return w.env[k] }, io.Discard, stderr}
		code <- run(ctx, in, assemble.Options{})
		_ = stderr.Close()
	}()
	logged := ""
	lines := bufio.NewScanner(r)
	for late := false; lines.Scan(); {
		logged += lines.Text() + "\n"
		if !late && strings.Contains(lines.Text(), "redis does not answer") {
			late = true
			if err := m.Restart(); err != nil {
				t.Error(err)
			}
		}
	}
	if c := <-code; c != 1 || !strings.Contains(logged, "Redis asks for no password") {
		t.Errorf("exit code %d:\n%s", c, logged)
	}
}

// A GitHub that is polled needs no address for webhooks.
func TestAddressesOfGitHub(t *testing.T) {
	t.Parallel()
	for want, gh := range map[string]config.GitHub{
		"github   http://e.example/github/webhook\n": {Token: "t", WebhookSecret: "s", Poll: time.Minute},
		"github   polled every 20s\n":                {Token: "t", Poll: 20 * time.Second},
	} {
		var shown strings.Builder
		printAddresses(&shown, "http://e.example", "/login", false, config.Config{GitHub: gh})
		if !strings.Contains(shown.String(), want) {
			t.Errorf("%q is not in %s", want, shown.String())
		}
	}
}
