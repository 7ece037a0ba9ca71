package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"github.com/robfig/cron/v3"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/redisserver/redistest"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/automation"
	"github.com/errand-fleet/errand/tasks/chat"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/inbox"
	"github.com/errand-fleet/errand/tasks/policy"
	"github.com/errand-fleet/errand/tasks/queue"
	"github.com/errand-fleet/errand/tasks/rights"
	"github.com/errand-fleet/errand/tasks/taskstest"
	"github.com/errand-fleet/errand/web"
)

const (
	testToken  = "correct-horse"
	fleetToken = "token-of-the-fleet"
)

// frontDoor is a real one, on a real Redis, for the client to talk to. The test plays the worker.
type frontDoor struct {
	taskstest.Worker
	redis  *redis.Client
	server *httptest.Server
	env    map[string]string
	shell  []string // what is in the environment besides
	dir    string   // where it runs
	dirs   string   // what is open for tasks
	logs   string
	stop   context.CancelFunc

	patience, pause time.Duration // of commands that are started

	services []store.Finding // of Slack and others
	inboxes  inbox.All

	mu  sync.Mutex
	cut func() // ends the latest stream of events
}

func newFrontDoor(t *testing.T) *frontDoor {
	t.Helper()
	rdb := redistest.Client(t, redistest.Start(t))
	f := &frontDoor{Worker: taskstest.Worker{T: t}, redis: rdb, dirs: t.TempDir(), logs: t.TempDir()}
	var err error
	if f.Store, err = store.New(store.Config{Redis: rdb}); err != nil {
		t.Fatal(err)
	}
	f.Desk = desk.New(f.Store, queue.New(f.Store, rdb, time.Hour), rights.Policy{}, nil)
	source := chat.New(chat.Config{Dirs: []string{f.dirs}})
	times, err := cron.ParseStandard("CRON_TZ=UTC 0 7 * * *")
	if err != nil {
		t.Fatal(err)
	}
	timed, err := automation.New(automation.Schedule, automation.Config{
		Memory: f.Store.Memos, Automations: []automation.Automation{
			{Name: "deps", When: "every day at 07:00", Times: times, Repo: "acme/api"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	f.stop = stop
	mux := http.NewServeMux()
	if err := source.Listen(ctx, mux, f.Desk); err != nil {
		t.Fatal(err)
	}
	f.inboxes = inbox.All{inbox.New(inbox.Config{Queue: inbox.Incoming, AtOnce: 1, Redis: rdb})}
	door, err := web.New(web.Config{
		Token: testToken, Desk: f.Desk, Store: f.Store, LogDir: f.logs, Mux: mux, FleetToken: fleetToken,
		Roles:     map[string]policy.Role{chat.Pattern: policy.User},
		Reviews:   map[string]tasks.Reviewer{"slack": reviews{}},
		Scheduler: timed, Inbox: f.inboxes,
		Examine: func(context.Context) []store.Finding { return f.services },
		Redis:   asynq.RedisClientOpt{Addr: rdb.Options().Addr},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = door.Close() })
	f.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		if strings.HasSuffix(r.URL.Path, "/events") {
			f.mu.Lock()
			f.cut = cancel
			f.mu.Unlock()
		}
		door.ServeHTTP(w, r.WithContext(ctx))
	}))
	t.Cleanup(f.server.Close)
	f.env = map[string]string{"ERRAND_HTTP_ADDR": f.server.Listener.Addr().String(), "ERRAND_CONSOLE_TOKEN": testToken}
	return f
}

func (f *frontDoor) cutStream() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cut()
}

func (f *frontDoor) getenv(name string) string { return f.env[name] }

// run runs a command to its end.
func (f *frontDoor) run(args ...string) (code int, stdout, stderr string) {
	f.Helper()
	return f.runWith("", args...)
}

// runWith is run with something on standard input.
func (f *frontDoor) runWith(stdin string, args ...string) (code int, stdout, stderr string) {
	f.Helper()
	var out, errs bytes.Buffer
	code = run(f.Context(), args, world{
		getenv: f.getenv, environ: f.shell, dir: f.dir, stdin: strings.NewReader(stdin), stdout: &out, stderr: &errs,
	})
	return code, out.String(), errs.String()
}

// running is a command that has not ended yet.
type running struct {
	*testing.T
	stdout, stderr *bufio.Reader
	signals        chan os.Signal
	code           chan int
}

func (f *frontDoor) start(args ...string) *running {
	f.Helper()
	// Pipes hold the command up until the test has read what it says; closing them lets it go on.
	outR, outW := io.Pipe()
	errR, errW := io.Pipe()
	ctx, cancel := context.WithCancel(f.Context())
	r := &running{f.T, bufio.NewReader(outR), bufio.NewReader(errR), make(chan os.Signal, 3), make(chan int, 1)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.code <- run(ctx, args, world{
			getenv: f.getenv, stdin: strings.NewReader(""), stdout: outW, stderr: errW, patience: f.patience,
			pause:  f.pause,
			notify: func() (<-chan os.Signal, func()) { return r.signals, func() {} },
		})
		_ = outW.Close()
		_ = errW.Close()
	}()
	f.Cleanup(func() { cancel(); _ = outR.Close(); _ = errR.Close(); <-done })
	return r
}

// line reads one line; the pipe says which stream it is from.
func (r *running) line(from *bufio.Reader) string {
	r.Helper()
	line, err := from.ReadString('\n')
	if err != nil {
		r.Fatalf("read line: %v, after %q", err, line)
	}
	return line
}

// rest reads both to their ends.
func (r *running) rest() (code int, stdout, stderr string) {
	r.Helper()
	var out, errs []byte
	var both sync.WaitGroup
	both.Go(func() { out, _ = io.ReadAll(r.stdout) })
	both.Go(func() { errs, _ = io.ReadAll(r.stderr) })
	both.Wait()
	return <-r.code, string(out), string(errs)
}

// submit puts a task in that is not from here.
func (f *frontDoor) submit(prompt string) string {
	f.Helper()
	r, err := f.Desk.Submit(f.Context(), tasks.Task{
		ID: tasks.NewID(time.Now(), "slack", "x"), Source: "slack", Kind: "mention", Thread: "slack/x",
		Class: tasks.Interactive, Profile: agent.Write, Repo: "acme/app", Actor: "ann", Channel: "C1", Prompt: prompt,
	})
	if err != nil {
		f.Fatal(err)
	}
	return r.ID
}

// chat asks for something in a thread.
func (f *frontDoor) chat(thread, prompt string) string {
	f.Helper()
	code, out, errs := f.run("chat", "--thread", thread, prompt)
	if code != 0 {
		f.Fatalf("exit %d: %s", code, errs)
	}
	return f.whole(strings.TrimSpace(out))
}

// whole returns the ID of the task that people know by a short one.
func (f *frontDoor) whole(short string) string {
	f.Helper()
	id, err := f.Desk.Find(f.Context(), short)
	if err != nil {
		f.Fatalf("find task %q: %v", short, err)
	}
	return id
}
