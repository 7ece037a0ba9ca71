package github

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/errand-fleet/errand/agent"
	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/internal/await"
	"github.com/errand-fleet/errand/internal/fake/githubfake"
	"github.com/errand-fleet/errand/internal/redisserver/redistest"
	"github.com/errand-fleet/errand/internal/testlog"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/github/findings"
	"github.com/errand-fleet/errand/tasks/github/review"
	"github.com/errand-fleet/errand/tasks/github/subject"
	"github.com/errand-fleet/errand/tasks/github/thread"
	"github.com/errand-fleet/errand/tasks/intake"
	"github.com/errand-fleet/errand/tasks/queue"
	"github.com/errand-fleet/errand/tasks/rights"
	"github.com/errand-fleet/errand/tasks/taskstest"
)

var update = flag.Bool("update", false, "update the golden files")

const (
	repo   = "acme/api"
	secret = "github-secret"

	askBurst = 20 // requests that one person may make at once

	collaborator = "GET /repos/{o}/{r}/collaborators/{u}/permission"
)

// world is a GitHub with one repository, and a Source for it.
type world struct {
	*testing.T
	hub  *githubfake.Server
	repo *githubfake.Repo
	src  *Source
	logs *testlog.Log
	conf config // of src

	ahead atomic.Int64 // by how many nanoseconds the sources' clocks are

	redis string // its URL
	db    *store.Store
	again func() *Source // what another process of the fleet has
}

// config is that of a Source and of its Forge.
type config struct {
	Config
	Hub hub.Config
}

// appKey is made once: that takes a while.
var appKey = sync.OnceValue(func() *rsa.PrivateKey { return must(rsa.GenerateKey(rand.Reader, 2048)) })

func pemKey() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(appKey())})
}

// both runs a test with a token and with an App.
func both(t *testing.T, test func(w *world)) {
	t.Helper()
	t.Parallel()
	t.Run("token", func(t *testing.T) { t.Parallel(); test(withToken(t)) })
	t.Run("app", func(t *testing.T) { t.Parallel(); test(withApp(t)) })
}

func withToken(t *testing.T, change ...func(*config)) *world {
	t.Helper()
	return newWorld(t, githubfake.Config{},
		append([]func(*config){func(c *config) { c.Hub.Token = "ghp_test" }}, change...))
}

func withApp(t *testing.T, change ...func(*config)) *world {
	t.Helper()
	return newApp(t, githubfake.Config{}, change...)
}

// newApp is an App that was made of the manifest, unless fake says otherwise.
func newApp(t *testing.T, fake githubfake.Config, change ...func(*config)) *world {
	t.Helper()
	fake.AppID, fake.AppKey, fake.InstallationID = 77, &appKey().PublicKey, 5
	if fake.Permissions == nil {
		fake.Permissions = hub.Permissions()
	}
	return newWorld(t, fake, append([]func(*config){func(c *config) {
		c.Hub.AppID, c.Hub.AppKey = 77,
			pemKey()
	}}, change...))
}

func newWorld(t *testing.T, fake githubfake.Config, change []func(*config)) *world {
	t.Helper()
	fake.HookTimeout = 2 * time.Minute // a machine may be busy
	w := &world{T: t, hub: must(githubfake.New(fake)), logs: &testlog.Log{}, redis: redistest.Start(t)}
	t.Cleanup(w.hub.Close)
	w.db = w.store(must(redis.ParseURL(w.redis)))
	w.repo = must(w.hub.CreateRepo("acme", "api", map[string]string{"main.go": "package main\n"}))
	w.hub.SetPermission(repo, "octocat", "write") // who opens pull requests
	w.again = func() *Source { return w.source(change...) }
	w.src = w.again()
	return w
}

// store is the fleet's memory, over a separate connection.
func (w *world) store(opt *redis.Options) *store.Store {
	w.Helper()
	rdb := redis.NewClient(opt)
	w.Cleanup(func() { _ = rdb.Close() })
	return must(store.New(store.Config{Redis: rdb}))
}

// source is a Source as one process of the fleet has it.
func (w *world) source(change ...func(*config)) *Source {
	w.Helper()
	conns := &http.Transport{}
	w.Cleanup(conns.CloseIdleConnections)
	cfg := config{
		Config: Config{
			WebhookSecret: secret, Memory: w.db.Memos, Inbox: &taskstest.Inbox{}, ConsoleURL: "https://errand.example/",
			Log: slog.New(slog.NewTextHandler(w.logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
		},
		Hub: hub.Config{APIURL: w.hub.APIURL(), URL: w.hub.URL(), HTTP: &http.Client{Transport: conns}},
	}
	for _, f := range change {
		f(&cfg)
	}
	now := cfg.Now
	if now == nil {
		now = time.Now
	}
	cfg.Now = func() time.Time { return now().Add(time.Duration(w.ahead.Load())) }
	cfg.Hub.Log, cfg.Hub.Now = cfg.Log, cfg.Now
	if cfg.Board != nil {
		cfg.Hub.ReadOnly = cfg.Board.Watches
	}
	cfg.Forge = must(hub.New(cfg.Hub))
	w.conf = cfg
	return must(New(cfg.Config))
}

// front is the front door with a desk behind it.
type front struct {
	*world
	db   *store.Store
	desk *desk.Desk
	url  string
}

// listen opens the front door and lets GitHub know where it is.
func (w *world) listen() front {
	w.Helper()
	return w.listenAt(must(redis.ParseURL(w.redis)))
}

func (w *world) listenAt(opt *redis.Options) front {
	w.Helper()
	return w.listenUnder(opt, rights.Policy{})
}

func (w *world) listenUnder(opt *redis.Options, p rights.Policy) front {
	w.Helper()
	rdb := redis.NewClient(opt)
	w.Cleanup(func() { _ = rdb.Close() })
	db := must(store.New(store.Config{Redis: rdb}))
	f := front{world: w, db: db, desk: desk.New(db, queue.New(db, rdb, time.Hour), p, nil)}
	mux := http.NewServeMux()
	if err := w.src.Listen(w.Context(), mux, f.desk); err != nil {
		w.Fatal(err)
	}
	server := httptest.NewServer(mux)
	w.Cleanup(server.Close)
	f.url = server.URL + "/github/webhook"
	w.hub.Deliver(f.url)
	return f
}

// interpret lets the source, as it is now, interpret events for the front's desk.
func (f front) interpret() { f.src.cfg.Inbox.Handle(sourceName, f.src.interpreter(f.desk).interpret) }

// tasks lists what was submitted, by ID.
func (f front) tasks() []tasks.Task {
	f.Helper()
	var all []tasks.Task
	for _, rec := range must(f.db.Live(f.Context())) {
		all = append(all, must(f.desk.Status(f.Context(), rec.ID)).Task)
	}
	return all
}

// send delivers an event and returns how it was answered, and what became of it if it was stored.
func (f front) send(event string, payload any, o githubfake.SendOptions) (status int, said string) {
	f.Helper()
	resp, err := f.hub.Send(f.Context(), event, payload, o)
	if err != nil {
		f.Fatal(err)
	}
	defer resp.Body.Close()
	said = strings.TrimSpace(string(must(io.ReadAll(resp.Body))))
	if inbox, ok := f.src.cfg.Inbox.(*taskstest.Inbox); ok && said == "Stored." {
		said = inbox.Outcome(resp.Request.Header.Get("X-GitHub-Delivery"))
	}
	return resp.StatusCode, said
}

// open opens a pull request and returns its number.
func (w *world) open(change ...func(*githubfake.PR)) int {
	w.Helper()
	pr := githubfake.PR{Repo: repo, Head: "change", Title: "Say hello", Body: "It is polite."}
	for _, f := range change {
		f(&pr)
	}
	// or two heads of one second could be the same commit
	pr.Files = map[string]string{pr.Head + ".go": "package main\n"}
	return must(w.hub.OpenPR(w.Context(), pr))
}

// task is the task of a pull request as it is now, made n seconds after others.
func (w *world) task(number, n int) tasks.Task {
	w.Helper()
	body := must(json.Marshal(must(w.hub.Payload("opened", repo, number, "octocat"))))
	d := delivery{id: "d", event: "pull_request", action: "opened", payload: body}
	err := d.decode()
	var made review.Candidate
	if err == nil {
		made, err = w.src.interpreter(nil).reviews.Of(w.Context(), d.id, d.pull)
	}
	if err != nil {
		w.Fatal(err)
	}
	t := must(made.WithOrigin())
	t.ID = tasks.NewID(time.Unix(1_790_000_000+int64(n), 0), "github", "d")
	return t
}

func (w *world) pull(number int) githubfake.Pull {
	w.Helper()
	return w.hub.Pulls(repo)[number-1]
}

// wait waits until f holds on GitHub.
func (w *world) wait(f func() bool) {
	w.Helper()
	ctx := await.Context(w)
	if err := w.hub.Wait(ctx, func(*githubfake.Server) bool { return f() }); err != nil {
		w.Fatal(err)
	}
}

// report opens a task's report.
func (w *world) report(t tasks.Task) tasks.Report {
	w.Helper()
	r, err := w.src.Open(w.Context(), t)
	if err != nil {
		w.Fatal(err)
	}
	return r
}

// close closes a task's report as some process of the fleet does.
func (w *world) close(t tasks.Task, e tasks.Ending) {
	w.Helper()
	if err := w.report(t).Close(w.Context(), e); err != nil {
		w.Fatal(err)
	}
}

var ended = time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)

// answered is the ending of a run with that answer.
func answered(text string) tasks.Ending {
	return tasks.Ending{Kind: tasks.Answered, At: ended, Result: agent.Result{
		Text: text, Duration: 123 * time.Second, Turns: 5, CostUSD: 0.12, Model: "claude-sonnet-4-5",
	}}
}

// golden compares with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := string(must(os.ReadFile(path)))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// ledger has the findings of a pull request.
func (w *world) ledger(number int) intake.Memo[findings.Ledger] {
	name := "github/" + thread.Ref{Repo: repo, Number: number}.String() + "/findings"
	return intake.Memo[findings.Ledger]{Memory: w.src.memory.Store, Name: name, Log: w.src.log}
}

// marked is the mark of an ending in what a review posts, such as its findings.
func marked(what string, t tasks.Task, e tasks.Ending) string {
	return fmt.Sprintf("<!-- errand:%s -->\n<!-- errand:task=%s head=%s ending=%s at=%d -->\n", what, t.ID,
		must(subject.Of(t)).Head, e.Kind, e.At.UnixMicro())
}

// forgetSettings makes the source, which may be in use, read the settings of the repository again: it makes time pass.
func (w *world) forgetSettings() {
	w.ahead.Add(int64(hub.RecentLife))
}

// reconfigure changes the configuration of a source that is not in use.
func (s *Source) reconfigure(change func(*Config)) {
	change(&s.cfg)
	parts := assemble(s.cfg)
	s.shared, s.briefs, s.reports = parts.shared, parts.briefs, parts.reports
}
