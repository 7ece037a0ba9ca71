// Command demo runs the whole system without any account: it starts fakes of Slack, GitHub and the model, starts the
// real `worker -standalone` against them, sends one mention and one pull request, and prints what happens. It then
// leaves one task in each state that the console shows. `demo -once` exits after that, successfully only if all of it
// was seen.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the demo at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// patience bounds the demo with -once, set-up included; it takes about half a minute.
const patience = 5 * time.Minute

// run runs the command and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.SetOutput(stderr)
	once := flags.Bool("once", false, "end by itself when all tasks are in their states")
	verbose := flags.Bool("v", false, "show the worker's own log, too")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	log := io.Discard
	if *verbose {
		log = stderr
	}
	if err := show(ctx, *once, stdout, log); err != nil {
		fmt.Fprintln(stderr, "demo:", err)
		return 1
	}
	return 0
}

// show runs the demo.
func show(ctx context.Context, once bool, stdout, log io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "errand-demo-")
	if err != nil {
		return fmt.Errorf("create demo directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s, err := newScene(ctx, filepath.Join(dir, "errand.yaml"))
	if err != nil {
		return err
	}
	defer s.close()
	t := &teller{w: stdout, start: time.Now(), said: make(chan struct{}, 1)}
	t.hush = t.remind()
	defer t.hush()
	t.say("errand", "starting the worker against fakes of Slack, GitHub and the model")
	sys, err := startSystem(ctx, s.environment(filepath.Join(dir, "state")), log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sys.stop()) }()
	s.slack.Deliver(sys.base + "/slack/events")
	s.github.Deliver(sys.base + "/github/webhook")

	err = play(ctx, once, s, sys, t)
	if ctx.Err() == nil {
		return err
	}
	fmt.Fprintln(stdout, "\nstopping")
	return nil
}

// play shows the scenes, and then waits for the end of ctx unless once is set.
func play(ctx context.Context, once bool, s *scene, sys *system, t *teller) error {
	limited := ctx
	if once {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, patience)
		defer cancel()
	}
	t.await("the worker to be ready")
	if err := sys.awaitReady(limited); err != nil {
		return err
	}
	t.await("the answer to the mention in Slack")
	if err := s.mention(limited, sys, t); err != nil {
		return err
	}
	t.await("the review of the pull request")
	if err := s.pullRequest(limited, sys, t); err != nil {
		return err
	}
	t.say("errand", "both answers are posted; more requests follow, which the console shows")
	if !once {
		fmt.Fprintf(t.w, "\n  console  %s\n  token    %s\n  queues   %s/queues/\n\n", sys.console,
			sys.token, sys.base)
		fmt.Fprint(t.w, "The console's link works once, for 15 minutes; after that, log in with the token.\n\n")
	}
	err := s.inhabit(limited, sys, t)
	if once || ctx.Err() != nil {
		return err
	}
	if err != nil {
		t.say("errand", "the rest is missing: %v", err)
	}
	t.hush()
	fmt.Fprint(t.w, "\nAll of it stays up until Ctrl-C.\n")
	<-ctx.Done()
	return nil
}

// silence is how long the demo waits without a line.
const silence = 8 * time.Second

// teller prints events with the time since the start and their place.
type teller struct {
	w     io.Writer
	start time.Time
	said  chan struct{} // holds one token after a line
	hush  func()        // ends the reminders
	mu    sync.Mutex    // held while a line is written, and for waits
	waits string        // for what the demo waits
}

// await sets what the demo waits for, for the reminders.
func (t *teller) await(what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waits = what
}

func (t *teller) awaited() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.waits
}

// remind prints a line after each silence, until stop is called.
func (t *teller) remind() (stop func()) {
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for waited := silence; ; {
			select {
			case <-end:
				return
			case <-t.said:
				waited = silence
			case <-time.After(silence):
				t.print("errand", "waiting for %s, %s so far", t.awaited(), waited)
				waited += silence
			}
		}
	}()
	return sync.OnceFunc(func() { close(end); <-ended })
}

func (t *teller) say(where, format string, args ...any) {
	t.print(where, format, args...)
	select {
	case t.said <- struct{}{}:
	default:
	}
}

func (t *teller) print(where, format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintf(t.w, "%6.1fs  %-8s %s\n", time.Since(t.start).Seconds(), where, fmt.Sprintf(format, args...))
}

// system is the worker that the demo started: the real binary, started the usual way.
type system struct {
	cmd     *exec.Cmd
	console string // login link, which works once
	base    string
	token   string
	last    map[string]string // the newest task that the demo knows, by source
}

// stopWithin is the worker's time budget for an orderly stop, plus a margin.
const stopWithin = 75 * time.Second

func startSystem(ctx context.Context, env []string, log io.Writer) (*system, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the worker: %w", err)
	}
	// Do not use ctx itself: its end would kill the worker, but the stop should be orderly.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), filepath.Join(filepath.Dir(self), "worker"), "-standalone")
	cmd.Env, cmd.Stderr = env, log
	// Ctrl-C in the terminal must reach only the demo, which then stops the worker.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start the worker: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the worker: %w (make build)", err)
	}
	s := &system{cmd: cmd, last: map[string]string{}}
	lines := bufio.NewScanner(out)
	for s.token == "" && lines.Scan() {
		switch name, value, _ := strings.Cut(strings.TrimSpace(lines.Text()), " "); name {
		case "console":
			s.console = strings.TrimSpace(value)
		case "token": // printed after the console
			s.token = strings.TrimSpace(value)
		}
	}
	if s.token == "" {
		return nil, errors.Join(errors.New("the worker did not start; demo -v shows its log"), cmd.Wait())
	}
	s.base, _, _ = strings.Cut(s.console, "/login?")
	go func() { _, _ = io.Copy(io.Discard, out) }()
	return s, nil
}

// readyWithin is how long a worker may take until it can run tasks.
const readyWithin = 20 * time.Second

// awaitReady returns when the worker can run tasks. The error has its reason if it cannot.
func (s *system) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	why := "it does not answer"
	for ctx.Err() == nil {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.base+"/api/health", http.NoBody)
		if err != nil {
			return fmt.Errorf("ask the worker: %w", err)
		}
		req.Header.Set("Authorization", "Bearer "+s.token)
		if resp, err := http.DefaultClient.Do(req); err == nil {
			var health struct{ Problem string }
			if json.NewDecoder(resp.Body).Decode(&health) == nil {
				why = health.Problem
			}
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
	return fmt.Errorf("the worker cannot run tasks: %s (demo -v shows its log)", why)
}

// stop stops the worker in an orderly way.
func (s *system) stop() error {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop the worker: %w", err)
	}
	kill := time.AfterFunc(stopWithin, func() { _ = s.cmd.Process.Kill() })
	defer kill.Stop()
	if err := s.cmd.Wait(); err != nil {
		return fmt.Errorf("stop the worker: %w", err)
	}
	return nil
}

func (s *system) get(ctx context.Context, path string) (*http.Response, error) {
	return s.send(ctx, http.MethodGet, path, http.NoBody)
}

// send sends a request to the worker's API.
func (s *system) send(ctx context.Context, method, path string, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, s.base+path, body)
	if err != nil {
		return nil, fmt.Errorf("ask the worker: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask the worker: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close()
		return nil, fmt.Errorf("ask the worker for %s: %s", path, resp.Status)
	}
	return resp, nil
}

// next returns the source's task after the one that next has returned before. It waits for it: the front door stores an
// event, and interprets it after its answer.
func (s *system) next(ctx context.Context, source string) (string, error) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		id, err := s.newest(ctx, source)
		if err != nil {
			return "", err
		}
		if id != s.last[source] {
			s.last[source] = id
			return id, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return "", fmt.Errorf("wait for the task of the event from %s: %w", source, context.Cause(ctx))
		}
	}
}

// newest returns the source's newest task, or "".
func (s *system) newest(ctx context.Context, source string) (string, error) {
	resp, err := s.get(ctx, "/api/tasks?limit=1&source="+source)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var list struct {
		Tasks []struct{ Task tasks.Task }
	}
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil {
		return "", fmt.Errorf("read the list of tasks: %w", err)
	}
	if len(list.Tasks) == 0 {
		return "", nil
	}
	return list.Tasks[0].Task.ID, nil
}

// follow prints what the agent does on the source's new task until the task has ended.
func (s *system) follow(ctx context.Context, source string, t *teller) error {
	id, err := s.next(ctx, source)
	if err != nil {
		return err
	}
	t.say("errand", "task %s submitted", id)
	resp, err := s.get(ctx, "/api/tasks/"+id+"/events")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		var e agent.Event
		if !ok || json.Unmarshal([]byte(data), &e) != nil {
			continue
		}
		switch e.Kind {
		case agent.Started:
			t.say("agent", "running, model %s", e.Text)
		case agent.ToolUse:
			t.say("agent", "→ %s", e.Text)
		case agent.ToolResult:
			first, _, _ := strings.Cut(e.Text, "\n")
			t.say("agent", "← %s", first)
		case agent.Notice:
			t.say("agent", "! %s", e.Text)
		case agent.TurnEnd:
			t.say("agent", "answered")
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("follow task %s: %w", id, err)
	}
	return nil
}
