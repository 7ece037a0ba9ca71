package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/forge"
	"github.com/errand-fleet/errand/internal/fake/slackfake"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/rights"
)

// results is the channel for the results of acme/web.
const results = "C0RESULTS"

// mind is a Memory.
type mind struct {
	mu    sync.Mutex
	memos map[string]json.RawMessage
}

func newMind() *mind { return &mind{memos: map[string]json.RawMessage{}} }

func (m *mind) Memo(_ context.Context, name string) (json.RawMessage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.memos[name], nil
}

func (m *mind) ChangeMemo(_ context.Context, name string, change func(json.RawMessage) (json.RawMessage, error)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, err := change(m.memos[name])
	if err == nil && now != nil {
		m.memos[name] = now
	}
	return err
}

func watching(cfg Config) Config {
	cfg.Results, cfg.Memory = map[string]string{"acme/web": results}, newMind()
	return cfg
}

// notice returns a notice of the n-th task of a pull request.
func told(n, pull int, e tasks.Ending, said, body string) tasks.Notice {
	e.At = e.At.Add(time.Duration(n) * time.Second)
	return tasks.Notice{
		Task: tasks.Task{
			ID: fmt.Sprintf("170000000000000%d-github-c%d", n, n), Repo: "acme/web", Profile: agent.Read,
		},
		Ending: e, Headline: said, Body: body,
		PullRequest: forge.PullRequest{
			Repo: "acme/web", Number: pull, Title: "Say <!channel> & *hello*",
			URL: fmt.Sprintf("https://github.com/acme/web/pull/%d", pull),
		},
	}
}

func (w *workspace) tell(s *Source, n tasks.Notice) {
	w.Helper()
	if err := s.Tell(w.Context(), n); err != nil {
		w.Error(err)
	}
}

// thread returns the parts of the messages at the top of the channel and in the thread of the first of them.
func (w *workspace) notices() (top, thread []string) {
	all := w.Messages(results, "")
	return partsOf(all), partsOf(w.Messages(results, all[0].TS))
}

const findings = `One problem with the units.

**major** [` + "`total.go:3`" + `](https://github.com/acme/web/blob/1a2b3c4/total.go#L3): This adds cents to euros, @here.

Total is in cents, see <!channel>.

Suggested change:

` + "```" + `
var Total = 100
` + "```" + `

**Still open**
- **minor** [` + "`tax.go:1`" + `](https://github.com/acme/web/blob/1a2b3c4/tax.go#L1): No test.`

func TestNotices(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, watching(Config{ConsoleURL: "https://e.example"}), slackfake.Config{Now: steady()})
	stopped := endings()["timed_out"]
	w.tell(w.source, told(1, 7, answered("x"), "Review of 1a2b3c4: 1 new finding", findings))
	w.tell(w.source, told(2, 7, stopped, "No review of 2b3c4d5: "+stopped.Sentence(), stopped.Body()))
	w.tell(w.source, told(3, 7, answered(""), "Answer to ann, <!channel>", "Because."))
	odd := told(4, 8, answered("x"), "Review of 1a2b3c4: no findings", "")
	odd.PullRequest.URL = "javascript:<alert>|(1)"
	w.tell(w.source, odd)
	top := w.Messages(results, "")
	if len(top) != 2 {
		t.Fatalf("%d messages at the top", len(top))
	}
	messages(t, "notices", append(w.Messages(results, top[0].TS), top[1]))
	for _, c := range w.Calls("chat.postMessage") {
		equal(t, "links looked up", c.Form.Get("unfurl_links")+c.Form.Get("unfurl_media"), "falsefalse")
	}
}

// Whatever request or response is lost, and whichever process continues, each notice is posted once, and all notices of
// a pull request are in one thread.
func TestNoticesOnce(t *testing.T) {
	t.Parallel()
	lost, failed := slackfake.Failure{After: true}, slackfake.Failure{Error: "internal_error"}
	for name, fail := range map[string]func(w *workspace){
		"the first answer":  func(w *workspace) { w.Fail("chat.postMessage", lost) },
		"the first message": func(w *workspace) { w.Fail("chat.postMessage", slackfake.Failure{}) },
		"the look for it": func(w *workspace) {
			w.Fail("chat.postMessage", lost)
			w.Fail("conversations.history", failed)
		},
		"the look into thread": func(w *workspace) { w.Fail("conversations.replies", failed) },
		"nothing":              func(*workspace) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := watching(Config{})
			w := newWorkspace(t, cfg, slackfake.Config{})
			fail(w)
			for _, n := range []tasks.Notice{
				told(1, 7, answered("x"), "One", longAnswer()[:20_000]), told(2, 7, answered("x"), "Two", "Two."),
			} {
				for range 4 { // as the outbox does, in any process
					_ = w.process(cfg).Tell(t.Context(), n)
				}
				w.tell(w.source, n)
			}
			top, thread := w.notices()
			equal(t, "top", top, []string{"final/1"})
			equal(t, "thread", thread, []string{"final/1", "final/2", "final/1"})
		})
	}
}

// Two concurrent first notices start one thread.
func TestNoticesAtOnce(t *testing.T) {
	t.Parallel()
	cfg := watching(Config{})
	w := newWorkspace(t, cfg, slackfake.Config{})
	hold := make(chan struct{})
	w.Fail("chat.postMessage", slackfake.Failure{Hold: hold})
	first := make(chan error)
	go func() { first <- w.source.Tell(t.Context(), told(1, 7, answered("x"), "One", "One.")) }()
	w.until("the first one under way", func() bool { return len(w.Calls("chat.postMessage")) == 1 })
	err := w.process(cfg).Tell(t.Context(), told(2, 7, answered("x"), "Two", "Two."))
	if _, ok := errors.AsType[*tasks.ErrLater](err); !ok {
		t.Errorf("the second one: %v", err)
	}
	w.tell(w.process(cfg), told(3, 8, answered("x"), "Three", "Of another pull request."))
	close(hold)
	if err := <-first; err != nil {
		t.Error(err)
	}
	w.tell(w.process(cfg), told(2, 7, answered("x"), "Two", "Two."))
	top, _ := w.notices()
	equal(t, "top", top, []string{"final/1", "final/1"})
}

// If the process of the first notice died before it could post, another one takes over after a while.
func TestNoticeThatNeverBegan(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	w := newWorkspace(t, watching(Config{Now: func() time.Time { return now }}), slackfake.Config{})
	w.Fail("chat.postMessage", slackfake.Failure{Error: "not_in_channel"})
	if err := w.source.Tell(t.Context(), told(1, 7, answered("x"), "One", "One.")); code(err) != "not_in_channel" {
		t.Error(err) // no process gives up: the app may be invited
	}
	if _, ok := errors.AsType[*tasks.ErrLater](w.source.Tell(t.Context(),
		told(2, 7, answered("x"), "Two", "Two."))); !ok {
		t.Error("two began at once")
	}
	now = now.Add(beginLimit)
	w.tell(w.source, told(2, 7, answered("x"), "Two", "Two."))
	w.tell(w.source, told(1, 7, answered("x"), "One", "One."))
	_, thread := w.notices()
	equal(t, "thread", thread, []string{"final/1", "final/1"})
}

// A notice without changes is posted once and not repeated. If a person has deleted the start of a thread, a new thread
// is started.
func TestQuietNotices(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, watching(Config{}), slackfake.Config{})
	quiet := func(n int) tasks.Notice {
		q := told(n, 7, answered("x"), "No findings", "Fine.")
		q.Quiet = true
		return q
	}
	for _, n := range []int{1, 1, 2} {
		w.tell(w.source, quiet(n))
	}
	_, thread := w.notices()
	equal(t, "thread", thread, []string{"final/1"})
	if err := w.source.client.remove(t.Context(), origin{Channel: results}, w.Messages(results, "")[0].TS); err != nil {
		t.Fatal(err)
	}
	w.tell(w.source, told(3, 7, answered("x"), "One", "One."))
	if top := w.Messages(results, ""); len(top) != 1 || !strings.Contains(top[0].Text, "One") {
		t.Errorf("%+v", top)
	}
}

// If Slack refuses blocks, the notice is posted as plain text; if it is too long, as a file.
func TestNoticesInOtherForms(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, watching(Config{}), slackfake.Config{})
	w.Fail("chat.postMessage", slackfake.Failure{Error: "invalid_blocks"})
	w.tell(w.source, told(1, 7, answered("x"), "One", longAnswer()[:6_000]))
	top, thread := w.notices()
	equal(t, "top", top, []string{"final/1.1"})
	equal(t, "thread", thread, []string{"final/1.1", "final/1.2"})
	long := told(2, 8, answered("x"), "Two", strings.Repeat(longAnswer(), 3))
	w.tell(w.source, long)
	w.tell(w.source, long)
	all := w.Messages(results, w.Messages(results, "")[1].TS)
	if len(all) != 2 || len(all[1].Files) != 1 ||
		!strings.Contains(all[0].Text+string(all[0].Blocks), "in the file in the thread") {
		t.Errorf("%+v", all)
	}
}

// A mention in the thread of a notice is about its pull request, unless the message names another. Messages without a
// mention are ignored there.
func TestRequestBelowANotice(t *testing.T) {
	t.Parallel()
	policy := rights.Policy{Repository: func(name string) (rights.Repository, bool) {
		return rights.Repository{Profile: map[string]agent.Profile{"acme/web": agent.Read}[name]}, true
	}}
	cfg := watching(Config{Repositories: []string{"acme/api", "acme/web"}})
	f := newFrontDoor(t, cfg, policy)
	stranger := told(2, 8, answered("x"), "Two", "Two.")
	stranger.PullRequest.Fork = true
	f.tell(f.source, told(1, 7, answered("x"), "One", "One."))
	f.tell(f.source, stranger)
	top := f.Messages(results, "")
	say := func(text, thread string, mention bool) {
		t.Helper()
		send := f.Post
		if mention {
			send = f.Mention
		}
		if _, err := send(t.Context(), slackfake.Message{
			Channel: results, User: ann, Text: text, ThreadTS: thread,
		}); err != nil {
			t.Fatal(err)
		}
	}
	say("I think it is fine", top[0].TS, false)
	equal(t, "tasks", f.prompts(), []string(nil))
	say("why?", top[0].TS, true)
	say("why here?", top[1].TS, true)
	say("[repo=acme/api] why there?", top[1].TS, true)
	var got []string
	for _, task := range f.tasks() {
		got = append(got, fmt.Sprintf("%s %s %s %s", task.Prompt, task.Repo, task.Ref, task.Profile))
	}
	equal(t, "tasks", got, []string{
		"why there? acme/api  write", "why here? acme/web refs/pull/8/head untrusted",
		"why? acme/web refs/pull/7/head read",
	})
}

func TestExamineResults(t *testing.T) {
	t.Parallel()
	cfg := watching(Config{})
	cfg.Results["acme/a"] = "C0OTHER"
	w := newWorkspace(t, cfg, slackfake.Config{})
	w.Fail("conversations.history", slackfake.Failure{Error: "not_in_channel"})
	var got []string
	for _, c := range w.source.examineResults(t.Context()) {
		got = append(got, fmt.Sprintf("%s %s %s", c.What, c.Why, c.Remedy))
	}
	equal(t, "checks", got, []string{
		"Slack: results of acme/a cannot go to C0OTHER: not_in_channel They are not posted. They are kept for about a day. " +
			"Invite the app to that channel, or correct results: in errand.yaml to the id that the channel's details show.",
		"Slack: results of acme/web go to C0RESULTS  ",
	})
	if _, err := New(Config{Token: "x", SigningSecret: "s", Results: cfg.Results}); err == nil ||
		!strings.Contains(err.Error(), "no memory of results") {
		t.Error(err)
	}
}

// scheduled returns a notice of a task that no person asked for.
func scheduled(n int, e tasks.Ending, channel string) tasks.Notice {
	e.At = e.At.Add(time.Duration(n) * time.Second)
	return tasks.Notice{
		Task: tasks.Task{
			ID:     fmt.Sprintf("170000000000000%d-schedule-nightly", n),
			Thread: fmt.Sprintf("schedule/nightly/2026050%d-0700", n), Repo: "acme/api", Profile: agent.Write,
		},
		Ending: e, Channel: channel, Headline: "Schedule nightly <!channel>", Body: e.Body(),
	}
}

// The result of each task that no person asked for is a message in the channel that is named for it, with its pull
// request. A request in its thread continues from the work.
func TestResultsOfAutomation(t *testing.T) {
	t.Parallel()
	cfg := Config{
		ConsoleURL: "https://e.example", Memory: newMind(), Channelled: map[string]string{"schedule nightly": results},
	}
	w := newWorkspace(t, cfg, slackfake.Config{Now: steady()})
	done := answered("Updated two dependencies.")
	done.Published = &tasks.Published{
		Work: tasks.Work{Repo: "acme/api", Branch: "errand/schedule-1"}, PullRequest: forge.PullRequestRef{
			Number: 12, URL: "https://github.com/acme/api/pull/12",
		},
	}
	for range 2 { // the second time, another process finds it
		w.tell(w.process(cfg), scheduled(1, done, results))
	}
	w.tell(w.source, scheduled(2, endings()["timed_out"], results))
	top := w.Messages(results, "")
	if len(top) != 2 {
		t.Fatalf("%d messages at the top", len(top))
	}
	messages(t, "automation", top)
	about, err := w.source.threadOf(t.Context(), origin{Channel: results, ThreadTS: top[0].TS}, tasks.Thread{})
	if err != nil || about.Repo != "acme/api" || about.Ref != "errand/schedule-1" || about.Profile != agent.Write {
		t.Errorf("its thread is about %+v: %v", about, err)
	}
}
