package slack

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slack-go/slack"

	"github.com/errand-fleet/errand/internal/fake/slackfake"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/rights"
)

// colours is a question that uses every field.
func colours() tasks.Question {
	return tasks.Question{
		Key: "k", Text: "Which one, <@U0BOB>?\n\n```go\nif a < b { // <!channel>",
		Options: []string{"red", "blue,\nas\tbefore", "<!here> & all"},
		Until:   time.Unix(1_700_003_600, 0),
	}
}

func TestUpdate(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, Config{ConsoleURL: "https://e.example"}, slackfake.Config{Now: steady()})
	task := w.task("")
	text := "**Half** of it is done, see [main](https://x.org/main.go), <@U0BOB> and @here.\n\n`<!channel>` & <!subteam^S1>\n"
	if err := w.source.Say(t.Context(), task, text); err != nil {
		t.Fatal(err)
	}
	messages(t, "update", w.posted(task))
	for _, c := range w.Calls("chat.postMessage") {
		equal(t, "links looked up", c.Form.Get("unfurl_links")+c.Form.Get("unfurl_media"), "falsefalse")
	}
}

func TestLongUpdate(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, Config{})
	task := w.task("")
	for _, fail := range []func(){func() {}, func() {
		w.Fail("chat.postMessage", slackfake.Failure{Error: "invalid_blocks"})
	}} {
		fail()
		if err := w.source.Say(t.Context(), task, longAnswer()); err != nil {
			t.Fatal(err)
		}
	}
	equal(t, "parts", partsOf(w.posted(task)), []string{
		"update/1", "update/2", "update/3", "update/4",
		"update/1.1", "update/1.2", "update/1.3", "update/1.4", "update/2", "update/3", "update/4",
	})
}

func TestQuestions(t *testing.T) {
	t.Parallel()
	free := colours()
	free.Text, free.Options = "What is it called?", nil
	for name, tc := range map[string]struct {
		q   tasks.Question
		cfg Config
	}{
		"question":         {colours(), Config{ConsoleURL: "https://e.example"}},
		"question_free":    {free, Config{}},
		"question_console": {free, Config{ConsoleURL: "https://e.example"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorkspace(t, tc.cfg, slackfake.Config{Now: steady()})
			task := w.task("")
			if err := w.source.Ask(t.Context(), task, tc.q); err != nil {
				t.Fatal(err)
			}
			messages(t, name, w.posted(task))
		})
	}
}

func TestQuestionInPlainText(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, Config{}, slackfake.Config{Now: steady()})
	task := w.task("")
	w.Fail("chat.postMessage", slackfake.Failure{Error: "invalid_blocks"})
	if err := w.source.Ask(t.Context(), task, colours()); err != nil {
		t.Fatal(err)
	}
	messages(t, "question_plain", w.posted(task))
}

// A question is posted once, also by another process, and in plain text only if Slack refuses that very one.
func TestQuestionIsPostedOnce(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, Config{})
	task := w.task("")
	w.Fail("chat.postMessage", slackfake.Failure{Error: "invalid_blocks"})
	for range 2 {
		for _, key := range []string{"one-1", "two-1"} {
			q := colours()
			q.Key = key
			if err := w.source.Ask(t.Context(), task, q); err != nil {
				t.Fatal(err)
			}
		}
	}
	equal(t, "parts", partsOf(w.posted(task)), []string{"question/1.1", "question/1"})
}

// An update by the agent should not be taken for its report.
func TestReportBesideTalk(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, Config{})
	task := w.task("")
	r := w.open(w.source, task)
	if err := errors.Join(w.source.Say(t.Context(), task, "Half."),
		w.source.Ask(t.Context(), task, colours())); err != nil {
		t.Fatal(err)
	}
	f, err := w.source.reporter.find(t.Context(), mustOrigin(t, task), task)
	equal(t, "found", []any{f.statusOf(task.ID), len(f.parts), err}, []any{w.posted(task)[0].TS, 1, nil})
	if err := r.Close(t.Context(), answered("All.")); err != nil {
		t.Fatal(err)
	}
	equal(t, "parts", partsOf(w.posted(task)), []string{"status", "update/1", "question/1", "final/1"})
	equal(t, "status", w.status(task), "✅ Done (2m5s)")
}

// talks are all ways in which the agent posts something on its way, by the method of Slack's that does it.
func talks(s *Source, task tasks.Task) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"chat.postMessage":      func(ctx context.Context) error { return s.Say(ctx, task, longAnswer()) },
		"conversations.replies": func(ctx context.Context) error { return s.Ask(ctx, task, colours()) },
		"files.completeUploadExternal": func(ctx context.Context) error {
			return s.Attach(ctx, task, "a", []byte("b"))
		},
	}
}

// The call is not repeated: it should wait for short pauses, with a limit; a long one should be an error that says
// how long.
func TestTalkIsPatient(t *testing.T) {
	t.Parallel()
	for method := range talks(nil, tasks.Task{}) {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			w := newWorkspace(t, Config{})
			talk := talks(w.source, w.task(""))[method]
			w.Fail(method, slackfake.Failure{Status: http.StatusTooManyRequests, Times: 2})
			if err := talk(t.Context()); err != nil {
				t.Errorf("no pause: %v", err)
			}
			for _, f := range []slackfake.Failure{{RetryAfter: 3600}, {Status: http.StatusTooManyRequests, Times: -1}} {
				w.Fail(method, f)
				err := talk(t.Context())
				if limited, ok := errors.AsType[*slack.RateLimitedError](err); !ok ||
					limited.RetryAfter != time.Duration(f.RetryAfter)*time.Second {
					t.Errorf("%d s: %v", f.RetryAfter, err)
				}
			}
			w.Heal(method)
			before := len(w.Calls(method))
			w.Fail(method, slackfake.Failure{RetryAfter: int(talkWait / time.Second)})
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- talk(ctx) }()
			w.until("the call", func() bool { return len(w.Calls(method)) > before })
			stop()
			if err := <-done; err == nil {
				t.Error("it was posted after its time")
			}
		})
	}
}

// A part that Slack held back is said once, in its place.
func TestUpdateIsSaidOnce(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, Config{})
	task := w.task("")
	limited := slackfake.Failure{Status: http.StatusTooManyRequests}
	for _, f := range []slackfake.Failure{{Hold: free}, limited, {Error: "invalid_blocks"}, {Hold: free}, limited} {
		w.Fail("chat.postMessage", f)
	}
	if err := w.source.Say(t.Context(), task, longAnswer()); err != nil {
		t.Fatal(err)
	}
	equal(t, "parts", partsOf(w.posted(task)), []string{"update/1", "update/2.1", "update/2.2", "update/3", "update/4"})
}

// Slack would post to the channel, with a ping, what belongs to a thread that was deleted. Where we may not look it
// is there.
func TestTalkInAThreadThatIsGone(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, Config{})
	gone := taskFrom(origin{Team: team, Channel: general, TS: "1600000000.000001", User: ann})
	for method, talk := range talks(w.source, gone) {
		if err := talk(t.Context()); code(err) != "thread_not_found" {
			t.Errorf("%s: %v", method, err)
		}
	}
	equal(t, "messages", len(w.Messages(general, "")), 0)

	task := w.task("")
	w.Fail("conversations.replies", slackfake.Failure{Error: "missing_scope", Times: -1})
	for method, talk := range talks(w.source, task) {
		if err := talk(t.Context()); err != nil {
			t.Errorf("%s: %v", method, err)
		}
	}
	equal(t, "messages", len(w.posted(task)), 4+1+1)

	for method, talk := range talks(w.source, tasks.Task{ID: "1-chat-1", Origin: []byte(`"x"`)}) {
		if err := talk(t.Context()); err == nil {
			t.Errorf("%s for another source", method)
		}
	}
}

func TestAttach(t *testing.T) {
	t.Parallel()
	client := &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
		if at, ok := r.Context().Deadline(); !ok || time.Until(at) > uploadLimit {
			return nil, errors.New("no deadline within a minute")
		}
		return http.DefaultTransport.RoundTrip(r)
	})}
	w := newWorkspace(t, Config{HTTP: client})
	task := w.task("")
	const name = "`https://x.org` <!here>.md"
	if err := w.source.Attach(t.Context(), task, name, []byte("fine")); err != nil {
		t.Fatal(err)
	}
	m := w.posted(task)[0]
	equal(t, "comment", m.Text, "`'https://x.org' &lt;\u200b!here&gt;.md`")
	equal(t, "file", m.Files, []slackfake.File{{
		ID: m.Files[0].ID, Name: name, Title: name, Size: 4, Data: []byte("fine"),
	}})

	w.Fail("files.getUploadURLExternal", slackfake.Failure{Error: "missing_scope"})
	if err := w.source.Attach(t.Context(), task, name, []byte("fine")); err == nil ||
		!strings.Contains(err.Error(), "lacks the scope files:write") {
		t.Errorf("without the scope: %v", err)
	}
	equal(t, "messages", len(w.posted(task)), 1)
}

func TestReadThread(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, Config{}, slackfake.Config{Now: steady()})
	task := w.task(w.seed(slackfake.Message{User: bob, Text: "the build is red"}))
	w.open(w.source, task)
	if err := errors.Join(
		w.source.Say(t.Context(), task, "I see **why**."), w.source.Ask(t.Context(), task, colours()),
		w.source.Attach(t.Context(), task, "build.log", []byte("red")),
	); err != nil {
		t.Fatal(err)
	}
	w.seed(slackfake.Message{ThreadTS: mustOrigin(t, task).root(), Text: "<@" + bot + "> blue"})
	text, err := w.source.ReadThread(t.Context(), task)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "read.golden", text)

	w.Fail("conversations.replies", slackfake.Failure{RetryAfter: 7})
	if text, err := w.source.ReadThread(t.Context(), task); err == nil || !strings.Contains(err.Error(), "7s") {
		t.Errorf("with too many calls: %q, %v", text, err)
	}
	if text, err := w.source.ReadThread(t.Context(), tasks.Task{}); err == nil {
		t.Errorf("of another source: %q", text)
	}
}

// A mention by the requester should answer the open question, in any form and however often Slack delivers it.
func TestMentionAnswersTheQuestion(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{}, rights.Policy{})
	root := f.mention("paint it")
	task, claim := f.begin()
	say := func(how func(context.Context, slackfake.Message) (string, error), user, text string) (ts string) {
		t.Helper()
		ts, err := how(t.Context(), slackfake.Message{
			Channel: general, User: user, Text: "<@" + bot + "> " + text, ThreadTS: root,
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range []string{
			slackfake.AppMention, slackfake.MessageEvent, slackfake.AppMention, slackfake.MessageEvent,
		} {
			if err := f.Redeliver(t.Context(), ts, kind); err != nil {
				t.Error(err)
			}
		}
		return ts
	}
	for key, how := range map[string]func(context.Context, slackfake.Message) (string, error){
		"k1": f.Mention, "k2": f.Post,
	} {
		q := tasks.Question{
			Key: key, Text: "Red or blue?", Options: []string{"red", "blue"}, Until: time.Now().Add(time.Hour),
		}
		body, err := json.Marshal(q)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := claim.Ask(t.Context(), key, body); err != nil {
			t.Fatal(err)
		}
		if err := f.source.Ask(t.Context(), task, q); err != nil {
			t.Fatal(err)
		}
		say(f.Mention, bob, "green, "+key)
		ts := say(how, ann, "2")
		stored, err := claim.Await(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		var a tasks.Answer
		if err := json.Unmarshal(stored, &a); err != nil {
			t.Fatal(err)
		}
		equal(t, "answer", []string{a.Text, a.By}, []string{"blue", ann})
		f.until("the sign", func() bool { return slices.Equal(f.Reactions(general, ts), []string{check}) })
	}
	last := say(f.Mention, ann, "and the door")
	f.until("the eyes", func() bool { return slices.Equal(f.Reactions(general, last), []string{eyes}) })
	got := f.prompts()
	slices.Sort(got)
	equal(t, "tasks", got, []string{"and the door", "green, k1", "green, k2", "paint it"})
	equal(t, "signs", len(f.Calls("reactions.add")), 6) // four tasks, two answers
}
