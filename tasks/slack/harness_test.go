package slack

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
	"github.com/slack-go/slack"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/await"
	"github.com/errand-fleet/errand/internal/fake/slackfake"
	"github.com/errand-fleet/errand/internal/redisserver/redistest"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/intake"
	"github.com/errand-fleet/errand/tasks/queue"
	"github.com/errand-fleet/errand/tasks/rights"
	"github.com/errand-fleet/errand/tasks/slack/render"
	"github.com/errand-fleet/errand/tasks/taskstest"
)

var update = flag.Bool("update", false, "write the golden files")

const (
	general = "C0GENERAL"
	ann     = "U0ANN"
	bob     = "U0BOB"
	bot     = "U0ERRAND"
	team    = "T0ERRAND"
)

// workspace is a fake Slack with a source connected to it over the wire.
type workspace struct {
	*testing.T
	*slackfake.Server
	source *Source
	cfg    Config // of the newest source
	log    *record
	door   string // where its events go
	inbox  *taskstest.Inbox
}

func newWorkspace(t *testing.T, cfg Config, fake ...slackfake.Config) *workspace {
	t.Helper()
	w := &workspace{T: t, log: &record{}, inbox: &taskstest.Inbox{}}
	server := append(fake, slackfake.Config{})[0]
	if server.AnswerWithin == 0 {
		server.AnswerWithin = time.Minute // whatever else the machine does
	}
	w.Server = slackfake.New(server)
	t.Cleanup(w.Close)
	w.source = w.process(cfg)
	return w
}

// process adds a process to the fleet.
func (w *workspace) process(cfg Config) *Source {
	w.Helper()
	cfg.Token, cfg.APIURL, cfg.SigningSecret = "xoxb-test", w.APIURL(), "slack-secret"
	cfg.Log, cfg.Inbox = slog.New(slog.NewTextHandler(w.log, nil)), impatient{w.inbox}
	if cfg.Interval == 0 {
		cfg.Interval = time.Hour // only the edits that a test wants
	}
	w.cfg = cfg
	s, err := New(cfg)
	if err != nil {
		w.Fatal(err)
	}
	s.listener.limit = time.Minute
	return s
}

// impatient is an inbox in which an event that is to come later does so at once.
type impatient struct{ *taskstest.Inbox }

func (b impatient) Handle(source string, h intake.Handler) {
	b.Inbox.Handle(source, func(ctx context.Context, e intake.Event) (outcome string, err error) {
		outcome, err = h(ctx, e)
		if _, later := errors.AsType[*tasks.ErrLater](err); later {
			e.Again = true
			outcome, err = h(ctx, e)
		}
		return outcome, err
	})
}

// until waits until the workspace satisfies a condition.
func (w *workspace) until(what string, done func() bool) {
	w.Helper()
	ctx := await.Context(w.T)
	if err := w.Wait(ctx, func(*slackfake.Server) bool { return done() }); err != nil {
		w.Fatalf("%s: %v\nlog:\n%s", what, err, w.log)
	}
}

// seed adds a message without sending an event.
func (w *workspace) seed(m slackfake.Message) (ts string) {
	w.Helper()
	if m.Channel == "" {
		m.Channel = general
	}
	if m.User == "" {
		m.User = ann
	}
	ts, err := w.Seed(m)
	if err != nil {
		w.Fatal(err)
	}
	return ts
}

// task returns the task of a mention in the thread, or at the top level if thread is empty, without a desk.
func (w *workspace) task(thread string) tasks.Task {
	w.Helper()
	ts := w.seed(slackfake.Message{Text: "<@" + bot + "> count", ThreadTS: thread})
	return taskFrom(origin{Team: team, Channel: general, TS: ts, ThreadTS: thread, User: ann})
}

// taskFrom returns the task of a message as a worker gets it.
func taskFrom(o origin) tasks.Task {
	t := o.task("count")
	t.Origin = o.json()
	return t
}

// open opens a report that ends with the test.
func (w *workspace) open(s *Source, t tasks.Task) *report {
	w.Helper()
	rep, err := s.Open(w.Context(), t)
	if err != nil {
		w.Fatal(err)
	}
	r, _ := rep.(*report)
	w.Cleanup(func() { _ = r.progress.writer.Close(context.Background()) })
	return r
}

// posted returns the bot's messages below the request of a task.
func (w *workspace) posted(t tasks.Task) []slackfake.Message {
	w.Helper()
	o, err := originOf(t)
	if err != nil {
		w.Fatal(err)
	}
	var list []slackfake.Message
	for _, m := range w.Messages(o.Channel, o.root()) {
		if m.User == bot && m.TS > o.TS {
			list = append(list, m)
		}
	}
	return list
}

// partsOf lists the markers of messages.
func partsOf(messages []slackfake.Message) []string {
	var list []string
	for _, m := range messages {
		var meta struct {
			Payload struct{ Part string } `json:"event_payload"`
		}
		_ = json.Unmarshal(m.Metadata, &meta)
		list = append(list, meta.Payload.Part)
	}
	return list
}

// status returns the text of the task's only status message.
func (w *workspace) status(t tasks.Task) string {
	w.Helper()
	var text []string
	for _, m := range w.posted(t) {
		if partsOf([]slackfake.Message{m})[0] == render.StatusPart {
			text = append(text, m.Text)
		}
	}
	if len(text) != 1 {
		w.Fatalf("%d status messages: %q", len(text), text)
	}
	return text[0]
}

// frontDoor is a workspace whose events arrive at a source with a real desk.
type frontDoor struct {
	*workspace
	store *store.Store
	desk  *desk.Desk
	stop  context.CancelFunc // ends the context of Listen
}

func newFrontDoor(t *testing.T, cfg Config, policy rights.Policy, fake ...slackfake.Config) *frontDoor {
	t.Helper()
	f := &frontDoor{workspace: newWorkspace(t, cfg, fake...)}
	opt, err := redis.ParseURL(redistest.Start(t))
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(opt)
	defer client.Close()
	// The data is older than the events of the tests, so that no task is in doubt.
	if err := client.HSet(t.Context(), "errand:epoch", "process", "", "since", 0).Err(); err != nil {
		t.Fatal(err)
	}
	f.store, f.desk = newDesk(t, opt, policy)
	ctx, stop := context.WithCancel(t.Context())
	f.stop = stop
	f.listen(ctx, f.desk)
	return f
}

func newDesk(t *testing.T, opt *redis.Options, policy rights.Policy) (*store.Store, *desk.Desk) {
	t.Helper()
	opt.ContextTimeoutEnabled, opt.MaxRetries = true, -1
	client := redis.NewClient(opt)
	t.Cleanup(func() { _ = client.Close() })
	st, err := store.New(store.Config{Redis: client})
	if err != nil {
		t.Fatal(err)
	}
	return st, desk.New(st, queue.New(st, client, time.Hour), policy, nil)
}

// listen sends the workspace's events to the source from now on.
func (w *workspace) listen(ctx context.Context, d *desk.Desk) {
	w.Helper()
	mux := http.NewServeMux()
	if err := w.source.Listen(ctx, mux, d); err != nil {
		w.Fatal(err)
	}
	server := httptest.NewServer(mux)
	w.Cleanup(server.Close)
	w.door = server.URL
	w.Deliver(server.URL + "/slack/events")
	w.Interactivity(server.URL + "/slack/interactions")
	w.Commands(server.URL + "/slack/commands")
}

// mention mentions the bot as Ann.
func (f *frontDoor) mention(text string) (ts string) {
	f.Helper()
	ts, err := f.Mention(f.Context(), slackfake.Message{Channel: general, User: ann, Text: text})
	if err != nil {
		f.Fatal(err)
	}
	return ts
}

// recently returns the timestamp of a message that was just written, and that Slack need not know.
func (f *frontDoor) recently() string { return fmt.Sprintf("%d.000100", f.source.client.now().Unix()) }

// send delivers an inner event and checks the answer.
func (f *frontDoor) send(event any, want int) {
	f.Helper()
	resp, err := f.Send(f.Context(), f.Envelope(event), slackfake.SendOptions{})
	if err != nil || resp.StatusCode != want {
		f.Errorf("%v: answered %v, %v; want %d", event, resp, err, want)
	}
}

// tasks returns all submitted tasks, the newest first.
func (f *frontDoor) tasks() []tasks.Task {
	f.Helper()
	list, err := f.desk.List(context.WithoutCancel(f.Context()), desk.Filter{Limit: 100})
	if err != nil {
		f.Fatal(err)
	}
	var out []tasks.Task
	for _, s := range list.Tasks {
		out = append(out, s.Task)
	}
	return out
}

// prompts returns their prompts.
func (f *frontDoor) prompts() []string {
	f.Helper()
	var list []string
	for _, t := range f.tasks() {
		list = append(list, t.Prompt)
	}
	return list
}

// record is a log that can be read while it is written.
type record struct {
	mu      sync.Mutex
	b       bytes.Buffer
	written chan struct{} // closed at the next line; nil without a waiting reader
}

func (r *record) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.written != nil {
		close(r.written)
		r.written = nil
	}
	return r.b.Write(p)
}

// wait returns true as soon as the log contains the text.
func (r *record) wait(ctx context.Context, text string) bool {
	for {
		r.mu.Lock()
		if r.written == nil {
			r.written = make(chan struct{})
		}
		written, found := r.written, strings.Contains(r.b.String(), text)
		r.mu.Unlock()
		if found {
			return true
		}
		select {
		case <-written:
		case <-ctx.Done():
			return false
		}
	}
}

func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.b.String()
}

// answered returns the ending of a task whose agent gave that answer.
func answered(text string) tasks.Ending {
	return tasks.Ending{Kind: tasks.Answered, At: time.UnixMicro(1_700_000_000_000_001), Result: agent.Result{
		Outcome: agent.Done, Text: text, Model: "opus", Turns: 5, CostUSD: 0.123, Duration: 125 * time.Second,
	}}
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// golden compares with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755),
			os.WriteFile(path, []byte(got), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, path, got, string(want))
}

func slackMessage(text string) slack.Message {
	return slack.Message{Msg: slack.Msg{User: ann, Text: text}}
}

// occupy lets as many interactions be under way as may be. release ends them.
func occupy(l *listener) (release func()) {
	for range maxPressing {
		l.pressing <- struct{}{}
	}
	return func() {
		for range maxPressing {
			<-l.pressing
		}
	}
}
