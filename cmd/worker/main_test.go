package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/cmd/internal/assemble"
	"github.com/errand-fleet/errand/config"
	"github.com/errand-fleet/errand/internal/await"
	"github.com/errand-fleet/errand/internal/fake/githubfake"
	"github.com/errand-fleet/errand/internal/fake/modelfake"
	"github.com/errand-fleet/errand/internal/fake/modelfake/clitest"
	"github.com/errand-fleet/errand/internal/fake/redissentinel"
	"github.com/errand-fleet/errand/internal/fake/slackfake"
	"github.com/errand-fleet/errand/internal/redisserver/redistest"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks/worker"
	"github.com/errand-fleet/errand/tasks/worker/attempt"
)

// quick shortens every interval that a test would have to wait for.
var quick = assemble.Options{
	Store: store.Config{ClaimTTL: 2 * time.Second, Refresh: 300 * time.Millisecond},
	Timing: worker.Timing{
		Observe: 600 * time.Millisecond, Reconcile: 200 * time.Millisecond, Lead: time.Second,
		Outbox: 200 * time.Millisecond, Beat: time.Second, Health: 30 * time.Second,
		Timing: attempt.Timing{
			Checkpoint: 300 * time.Millisecond, Again: 50 * time.Millisecond, Reset: 50 * time.Millisecond,
			Release: 100 * time.Millisecond,
		},
	},
	Status: 200 * time.Millisecond,
	Quiet:  200 * time.Millisecond,
	Look:   time.Second,
}

// underTest is argv[0] of this binary when it plays a worker that can be killed.
const underTest = "errand-worker-under-test"

func TestMain(m *testing.M) {
	agent.KeeperMain()
	if os.Args[0] == underTest || filepath.Base(os.Args[0]) == "worker" { // which the guide starts
		quick.Process = true
		os.Exit(run(assemble.Signals(context.Background()), invocation{
			os.Args[1:], os.Getenv, os.Stdout, os.Stderr,
		}, quick))
	}
	os.Exit(m.Run())
}

// world is everything around errand, each a server with real connections.
type world struct {
	*testing.T
	slack  *slackfake.Server
	github *githubfake.Server
	model  *modelfake.Server
	env    map[string]string
	redis  string // its URL with all rights; errand's user has the documented ones

	issued []string // secrets that services have handed out to the worker
	sought *sought
}

const (
	channel = "C0PAYMENTS"
	person  = "U0ANN"
	repo    = "acme/payments"
)

// The secrets of the fleet differ from those of all other processes on this machine, whose files an agent may find.
var (
	token         = "console-" + rand.Text()
	fleetPassword = "redis-" + rand.Text()
	modelKey      = "sk-ant-" + rand.Text()
	slackToken    = "xoxb-" + rand.Text()
	slackSecret   = "slack-" + rand.Text()
	githubToken   = "ghp_" + rand.Text()
	githubSecret  = "github-" + rand.Text()
)

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, model: modelfake.New(), redis: redistest.Start(t)}
	w.slack = slackfake.New(slackfake.Config{BotToken: slackToken, SigningSecret: slackSecret})
	t.Cleanup(w.slack.Close)
	t.Cleanup(w.model.Close)
	var err error
	if w.github, err = githubfake.New(githubfake.Config{Token: githubToken, WebhookSecret: githubSecret}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.github.Close)
	if _, err := w.github.CreateRepo("acme", "payments", map[string]string{
		"total.go": "package total\n", "CLAUDE.md": "Count in cents.\n",
	}); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	yaml := filepath.Join(dir, "errand.yaml")
	text := "repositories:\n  " + repo + ":\n    trusted: true\nchannels:\n  " + channel +
		":\n    repository: " + repo + "\n"
	w.write(yaml, text)
	temp, err := os.MkdirTemp("", "we") //nolint:usetesting // t.TempDir contains the test's name, which is too long for a run's sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(temp) })
	w.env = map[string]string{
		"PATH": os.Getenv("PATH"), "TMPDIR": temp, "REDIS_URL": w.fleetUser(), "ERRAND_CONFIG": yaml,
		"ERRAND_STATE_DIR": filepath.Join(dir, "state"), "ERRAND_HTTP_ADDR": "127.0.0.1:0",
		"ERRAND_WORKER_ADDR": "127.0.0.1:0", "ERRAND_CONSOLE_TOKEN": token, "ERRAND_CLAUDE": clitest.Find(t),
		"ERRAND_CONCURRENCY": "3",
		"ERRAND_ALLOW_ROOT":  "true", // the user who runs the tests
		"ANTHROPIC_BASE_URL": w.model.URL(), "ANTHROPIC_API_KEY": modelKey,
		"SLACK_API_URL": w.slack.APIURL(), "SLACK_BOT_TOKEN": slackToken, "SLACK_SIGNING_SECRET": slackSecret,
		"GITHUB_API_URL": w.github.APIURL(), "GITHUB_URL": w.github.URL(), "GITHUB_TOKEN": githubToken,
		"GITHUB_WEBHOOK_SECRET": githubSecret,
	}
	if !sandboxed() {
		w.env["ERRAND_SANDBOX"] = "none" // must be set explicitly
	}
	return w
}

// sandboxed reports whether this machine lets runs have a sandbox.
var sandboxed = sync.OnceValue(func() bool {
	r, err := agent.New(agent.Config{LogDir: os.TempDir(), Sandbox: agent.SandboxBwrap})
	if err != nil {
		return false
	}
	_, err = r.Protection(context.Background())
	return err == nil
})

// fleetUser creates a user of Redis with the documented rights and returns the URL with it.
func (w *world) fleetUser() string {
	w.Helper()
	rights, err := redissentinel.Rights(filepath.Join("..", "..", "docs", "redis.md"))
	if err != nil {
		w.Fatal(err)
	}
	create := []any{"ACL", "SETUSER", "errand", "reset", "on", ">" + fleetPassword}
	for _, right := range rights {
		create = append(create, right)
	}
	admin := w.admin()
	if err := admin.Do(w.Context(), create...).Err(); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		refused, err := admin.ACLLog(context.Background(), 100).Result()
		if err != nil {
			w.Errorf("read refused commands: %v", err)
		}
		for _, e := range refused {
			if e.Object != "config|get" { // asked where it is permitted
				w.Errorf("refused: %s %s %s", e.Reason, e.Object, e.Username)
			}
		}
	})
	u, err := url.Parse(w.redis)
	if err != nil {
		w.Fatal(err)
	}
	u.User = url.UserPassword("errand", fleetPassword)
	return u.String()
}

func (w *world) getenv(name string) string { return w.env[name] }

// write writes a file.
func (w *world) write(name, text string) {
	w.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		w.Fatal(err)
	}
}

// configure adds sections to errand.yaml.
func (w *world) configure(sections string) {
	w.Helper()
	text, err := os.ReadFile(w.env["ERRAND_CONFIG"])
	if err != nil {
		w.Fatal(err)
	}
	w.write(w.env["ERRAND_CONFIG"], string(text)+sections)
}

// bash is a turn of the model that calls the tool Bash.
func bash(command string) modelfake.Turn {
	return modelfake.Turn{Tools: []modelfake.ToolCall{{Name: "Bash", Input: map[string]string{"command": command}}}}
}

// start starts the whole system in this process and returns its output.
func (w *world) start() *bufio.Scanner {
	w.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r, out := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, invocation{[]string{"-standalone"}, w.getenv, out, w.Output()}, quick)
		_ = out.Close()
	}()
	w.Cleanup(func() {
		cancel()
		if code := <-ended; code != 0 {
			w.Errorf("worker exited with %d", code)
		}
	})
	w.Cleanup(func() { _ = r.Close() }) // registered first, so that it does not wait for a reader of the rest
	return bufio.NewScanner(r)
}

// standalone starts the whole system in this process and returns its address.
func (w *world) standalone() (base string) {
	w.Helper()
	lines := w.start()
	for lines.Scan() {
		if url, ok := strings.CutPrefix(strings.TrimSpace(lines.Text()), "console"); ok {
			base, _, _ = strings.Cut(strings.TrimSpace(url), "/login?")
			break
		}
	}
	if base == "" {
		w.Fatal("the worker did not say where its console is")
	}
	go func() {
		for lines.Scan() { // to the end, so that it does not block
		}
	}()
	w.slack.Deliver(base + "/slack/events")
	w.github.Deliver(base + "/github/webhook")
	return base
}

// process starts a worker process without a front door and returns it.
func (w *world) process() *exec.Cmd { return w.processTo(w.Output()) }

// processTo is process with another destination for its output.
func (w *world) processTo(out io.Writer) *exec.Cmd {
	w.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{underTest}
	for k, v := range w.env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Start(); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Signal(syscall.SIGTERM)
			_ = cmd.Wait()
		}
	})
	return cmd
}

// With -front-door the program is the front door alone.
func TestFrontDoor(t *testing.T) {
	t.Parallel()
	env := map[string]string{
		"REDIS_URL": redistest.Start(t), "ERRAND_ALLOW_OPEN_REDIS": "true", "ERRAND_HTTP_ADDR": "127.0.0.1:0",
		"ERRAND_CONSOLE_TOKEN": token, "ERRAND_STATE_DIR": t.TempDir(),
	}
	ctx, cancel := context.WithCancel(t.Context())
	r, out := io.Pipe()
	code := make(chan int, 1)
	go func() {
		in := invocation{[]string{"-front-door"}, func(k string) string { return env[k] }, out, t.Output()}
		code <- run(ctx, in, assemble.Options{})
		_ = out.Close()
	}()
	said, err := bufio.NewReader(r).ReadString('\n')
	base, found := strings.CutPrefix(strings.TrimSpace(said), "errand listens at ")
	if err != nil || !found {
		t.Fatalf("%q, %v", said, err)
	}
	w := world{T: t}
	if got := w.get(base + "/api/tasks"); !strings.Contains(got, `"tasks"`) {
		t.Error(got)
	}
	cancel()
	if got := <-code; got != 0 {
		t.Errorf("exit %d", got)
	}
}

// frontDoor is `enqueue serve`, in this process, and returns its address.
func (w *world) frontDoor() (base string) {
	w.Helper()
	c, err := config.Load(w.getenv, config.RoleFrontdoor)
	if err != nil {
		w.Fatal(err)
	}
	parts, err := assemble.New(c, assemble.Logger(w.Output(), c), quick)
	if err != nil {
		w.Fatal(err)
	}
	door, err := parts.FrontDoor(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	server := httptest.NewServer(door)
	w.Cleanup(func() {
		server.Close()
		_ = door.Close()
		_ = parts.Close()
	})
	w.slack.Deliver(server.URL + "/slack/events")
	return server.URL
}

// get sends a GET request to the API and returns the body.
func (w *world) get(url string) string {
	w.Helper()
	req, err := http.NewRequestWithContext(w.Context(), http.MethodGet, url, nil)
	if err != nil {
		w.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		w.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		w.Fatalf("GET %s: %s, %v: %s", url, resp.Status, err, body)
	}
	return string(body)
}

func (w *world) mention(text, thread string) (ts string) {
	w.Helper()
	ts, err := w.slack.Mention(w.Context(), slackfake.Message{
		Channel: channel, User: person, Text: text, ThreadTS: thread,
	})
	if err != nil {
		w.Fatal(err)
	}
	return ts
}

// answers waits until the bot has posted n messages in a thread, not counting its status messages, and returns them.
func (w *world) answers(thread string, n int) []string {
	w.Helper()
	ctx := await.Context(w)
	var got []string
	err := w.slack.Wait(ctx, func(*slackfake.Server) bool {
		got = w.finals(thread)
		return len(got) >= n
	})
	if err != nil {
		w.Fatalf("wait for %d answers: %v; the thread is %+v", n, err, w.slack.Messages(channel, thread))
	}
	return got
}

// finals returns the answers that are in a thread now.
func (w *world) finals(thread string) (got []string) {
	for _, m := range w.slack.Messages(channel, thread) {
		if m.BotID != "" && strings.Contains(string(m.Metadata), "final/") {
			got = append(got, m.Text+string(m.Blocks))
		}
	}
	return got
}

// stubborn is a CLI that ignores every request to end and has started a process in another session. Both hold the fifo
// at path open.
func (w *world) stubborn() (alive *fifo) {
	w.Helper()
	// Not below the directory for temporary files, which a sandbox replaces.
	dir, err := os.MkdirTemp("/var/tmp", "we")
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "alive")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		w.Fatal(err)
	}
	script := `#!/bin/bash
case "$1" in
--version) echo "2.1.332 (Claude Code)"; exit;;
auth) echo '{"loggedIn":true,"authMethod":"api_key"}'; exit;;
esac
trap '' TERM INT HUP
exec 9>` + path + `
setsid /bin/bash -c 'trap "" TERM HUP INT; while :; do /bin/sleep 1; done' </dev/null >/dev/null 2>&1 &
echo up >&9
echo '{"type":"system","subtype":"init","session_id":"s","model":"stubborn"}'
echo '{"type":"assistant","session_id":"s","message":{"id":"m","content":[{"type":"text","text":"I had got as far as this"}]}}'
while :; do /bin/sleep 1; done
`
	cli := filepath.Join(dir, "claude")
	// A fork elsewhere in this process would inherit the file open for writing, and exec would then fail with ETXTBSY
	// (golang/go#22315).
	syscall.ForkLock.RLock()
	err = os.WriteFile(cli, []byte(script), 0o700)
	syscall.ForkLock.RUnlock()
	if err != nil {
		w.Fatal(err)
	}
	w.env["ERRAND_CLAUDE"] = cli
	return &fifo{path: path}
}

// fifo reports whether any process still has its other end open.
type fifo struct {
	path string
	f    *os.File
}

// up waits for the stubborn CLI and its child.
func (p *fifo) up(w *world) {
	w.Helper()
	f, err := os.Open(p.path)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = f.Close() })
	p.f = f
	if _, err := io.ReadFull(f, make([]byte, len("up\n"))); err != nil {
		w.Fatal(err)
	}
}

// gone waits until every process that had the other end open is dead.
func (p *fifo) gone(w *world) {
	w.Helper()
	if _, err := io.Copy(io.Discard, p.f); err != nil {
		w.Errorf("read fifo: %v", err)
	}
}

// marked lists the processes that carry the marker of any run of this world. They are recognised by its state
// directory's runs.
func (w *world) marked(run string) []int {
	w.Helper()
	var pids []int
	procs, err := os.ReadDir("/proc")
	if err != nil {
		w.Fatal(err)
	}
	for _, p := range procs {
		pid, err := strconv.Atoi(p.Name())
		if err != nil {
			continue
		}
		env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err == nil && strings.Contains("\x00"+string(env), "\x00ERRAND_RUN="+run+"\x00") {
			pids = append(pids, pid)
		}
	}
	return pids
}

// The front door is started by enqueue serve, and its errors say so.
func TestFrontDoorDoesNotStart(t *testing.T) {
	t.Parallel()
	var errs strings.Builder
	in := invocation{[]string{"-front-door"}, func(string) string { return "" }, t.Output(), &errs}
	if code := run(t.Context(), in, assemble.Options{}); code != 1 ||
		!strings.HasPrefix(errs.String(), "enqueue serve: configuration: ") {
		t.Errorf("exit %d: %s", code, errs.String())
	}
}
