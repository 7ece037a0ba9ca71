package slack

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/forge"
	show "github.com/errand-fleet/errand/internal/display"
	"github.com/errand-fleet/errand/internal/fake/slackfake"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/slack/render"
)

// endings are the possible endings of a task.
func endings() map[string]tasks.Ending {
	stopped := answered("").Result
	stopped.Text, stopped.Partial = "", "I looked at\n\n```go\nmain()\n```\nand <!channel>"
	at := answered("").At
	published, together, kept := answered("Mended."), answered("Mended both."), answered("Mended.")
	published.Published = &tasks.Published{
		Work:        tasks.Work{Repo: "acme/api", Branch: "errand/slack-1a2b3c4d5e"},
		PullRequest: forge.PullRequestRef{Number: 7, URL: "https://github.com/acme/api/pull/7"},
	}
	together.Published = published.Published
	together.Also = []*tasks.Published{{
		Work:        tasks.Work{Repo: "acme/web", Branch: "errand/slack-1a2b3c4d5e"},
		PullRequest: forge.PullRequestRef{Number: 8, URL: "https://github.com/acme/web/pull/8", Draft: true},
	}}
	kept.Published = &tasks.Published{Problem: "The changes were not published: <!channel> & more.\nThey are kept."}
	return map[string]tasks.Ending{
		"published": published,
		"together":  together,
		"kept":      kept,
		"answered":  answered("# Result\n\nIt is **fine**, see [main](https://x.org/main.go). Thanks to <@U0BOB>, @here.\n\n```go\nif a < b { }\n```\n"),
		"empty":     answered(""),
		"failed": {
			Kind: tasks.Failed, Reason: "The model is <overloaded> & @channel\nis gone.", Result: stopped, At: at,
		},
		"timed_out": {Kind: tasks.TimedOut, Limit: "2h", Result: stopped, At: at},
		"stalled":   {Kind: tasks.Stalled, Limit: "15m", Result: agent.Result{Duration: time.Minute}, At: at},
		"cancelled": {Kind: tasks.Cancelled, By: "console", At: at},
		"refused":   {Kind: tasks.Refused, Reason: strings.Repeat("Too long & more. ", 60), At: at},
		"lost":      {Kind: tasks.Lost, At: at},
	}
}

// steady is a clock that gives every message its own time, the same in every run.
func steady() func() time.Time {
	now := time.Unix(1_700_000_000, 0)
	return func() time.Time { now = now.Add(time.Second); return now }
}

func TestFinalMessages(t *testing.T) {
	t.Parallel()
	for name, e := range endings() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorkspace(t, Config{ConsoleURL: "https://e.example"}, slackfake.Config{Now: steady()})
			task := w.task("")
			w.source.client.react(t.Context(), mustOrigin(t, task), eyes)
			if err := w.open(w.source, task).Close(t.Context(), e); err != nil {
				t.Fatal(err)
			}
			messages(t, name, w.posted(task))
			equal(t, "eyes", w.Reactions(general, mustOrigin(t, task).TS), []string(nil))
			if said := w.log.String(); said != "" {
				t.Errorf("log: %s", said)
			}
		})
	}
}

// longAnswer has paragraphs, a code block that must be cut, and a line that must be cut.
func longAnswer() string {
	var b strings.Builder
	for i := range 60 {
		fmt.Fprintf(&b, "Paragraph %d says that a & b < c, and **no more**.\n\n", i)
	}
	b.WriteString("```go\n")
	for i := range 400 {
		fmt.Fprintf(&b, "\tcall(%d) // <here> it goes on\n", i)
	}
	b.WriteString("```\n\n" + strings.Repeat("&", 13_000))
	return b.String()
}

func TestLongAnswer(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, Config{}, slackfake.Config{Now: steady()})
	task := w.task("")
	if err := w.open(w.source, task).Close(t.Context(), answered(longAnswer())); err != nil {
		t.Fatal(err)
	}
	messages(t, "long", w.posted(task))
	equal(t, "parts", partsOf(w.posted(task)), []string{"status", "final/1", "final/2", "final/3", "final/4"})
	for _, c := range w.Calls("chat.postMessage") {
		equal(t, "links looked up", c.Form.Get("unfurl_links")+c.Form.Get("unfurl_media"), "falsefalse")
	}
}

// If Slack refuses blocks, the same content is posted as plain text.
func TestLongAnswerInPlainText(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, Config{}, slackfake.Config{Now: steady()})
	task := w.task("")
	r := w.open(w.source, task)
	w.Fail("chat.postMessage", slackfake.Failure{Error: "invalid_blocks"})
	if err := r.Close(t.Context(), answered(longAnswer())); err != nil {
		t.Fatal(err)
	}
	list := w.posted(task)
	messages(t, "plain", list[:5])
	equal(t, "parts", partsOf(list), []string{
		"status", "final/1.1", "final/1.2", "final/1.3", "final/1.4", "final/2", "final/3", "final/4",
	})
	if !strings.Contains(w.log.String(), "post in plain text") {
		t.Errorf("log: %s", w.log)
	}
}

// The whole answer is posted, fits the limits, and pings only the requester.
func TestPlainText(t *testing.T) {
	t.Parallel()
	console := render.Console(nil)
	for name, e := range endings() {
		for _, p := range console.Final(tasks.Task{ID: "1"}, ann, e) {
			all := strings.Join(p.Plain(), "\n")
			for _, ping := range []string{"<!", "@here", "@channel", "<@U0BOB"} {
				if strings.Contains(all, ping) {
					t.Errorf("%s: %s in %s", name, ping, all)
				}
			}
			if strings.Count(all, "<@"+ann+">") != 1 || strings.Count(all, "run "+show.TaskID("1")) != 1 {
				t.Errorf("%s: %s", name, all)
			}
		}
	}
	ampersands := 0
	for i, p := range console.Final(tasks.Task{ID: "1"}, ann, answered(longAnswer())) {
		for _, text := range p.Plain() {
			if n := utf8.RuneCountInString(text); n > 3_900 || text == "" {
				t.Errorf("part %d has %d characters", i, n)
			}
			ampersands += strings.Count(text, "&amp;")
		}
	}
	equal(t, "ampersands", ampersands, 13_060)
}
