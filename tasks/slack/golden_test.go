package slack

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/fake/slackfake"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/intake"
	"github.com/errand-fleet/errand/tasks/policy"
	"github.com/errand-fleet/errand/tasks/slack/render"
)

// goldenMessage is a message as a golden file has it.
type goldenMessage struct {
	Metadata json.RawMessage `json:"metadata,omitempty"`
	Text     string          `json:"text"`
	Blocks   json.RawMessage `json:"blocks,omitempty"`
}

// messages compares messages with a golden file, and checks each against Slack's published limits. Long texts are
// shortened in the file.
func messages(t *testing.T, name string, list []slackfake.Message) {
	t.Helper()
	var out []goldenMessage
	for i, m := range list {
		for _, problem := range slackfake.Lint(m.Blocks, m.Text) {
			t.Errorf("%s: message %d: %s", name, i, problem)
		}
		s := goldenMessage{Metadata: m.Metadata, Text: shorten(m.Text)}
		if m.Blocks != nil {
			s.Blocks = shortened(t, m.Blocks)
		}
		out = append(out, s)
	}
	goldenJSON(t, name, out)
}

func goldenJSON(t *testing.T, name string, v any) {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	golden(t, filepath.Join("golden", name+".json"), b.String())
}

// shortened returns blocks with their long texts shortened.
func shortened(t *testing.T, blocks json.RawMessage) json.RawMessage {
	t.Helper()
	var v any
	if err := json.Unmarshal(blocks, &v); err != nil {
		t.Fatal(err)
	}
	var walk func(any) any
	walk = func(v any) any {
		switch v := v.(type) {
		case string:
			return shorten(v)
		case []any:
			for i := range v {
				v[i] = walk(v[i])
			}
		case map[string]any:
			for k := range v {
				v[k] = walk(v[k])
			}
		}
		return v
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(walk(v)); err != nil {
		t.Fatal(err)
	}
	return bytes.TrimSpace(b.Bytes())
}

// shorten cuts the middle out of a long text.
func shorten(text string) string {
	if r := []rune(text); len(r) > 600 {
		return fmt.Sprintf("%s\n[… %d characters …]\n%s", string(r[:200]), len(r)-400, string(r[len(r)-200:]))
	}
	return text
}

// The states of a status message, from the first to the last.
func TestStatusMessages(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, Config{ConsoleURL: "https://e.example"}, slackfake.Config{Now: steady()})
	now := time.Unix(1_700_000_000, 0)
	p := newProgress(func() time.Time { return now })
	views := []render.Status{p.status()}
	add := func(e agent.Event) {
		p.add(e)
		views = append(views, p.status())
	}
	add(agent.Event{Kind: agent.Started})
	add(agent.Event{
		Kind: agent.ToolUse,
		Text: "Running echo '<!channel> & @here' | tee a-file-with-a-name-that-is-longer-than-what-is-shown-of-it",
	})
	now = now.Add(61 * time.Minute)
	add(agent.Event{Kind: agent.ToolResult})
	for _, r := range []desk.Receipt{{Position: 1}, {Position: 2}} {
		views = append(views, render.Headline(tasks.QueuedHeadline(r.Position)))
	}
	task := w.task("")
	o := mustOrigin(t, task)
	for _, v := range views {
		d := &display{client: w.source.client, origin: o, log: w.source.client.log}
		if err := d.post(t.Context(), render.StatusMarker(task), v,
			w.source.reporter.console.RunButtons(task.ID)); err != nil {
			t.Fatal(err)
		}
	}
	messages(t, "status", w.posted(task))
}

// The ephemeral messages: every sentence that a press can cause.
func TestWords(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, Config{}, slackfake.Config{Now: steady()})
	o := origin{Team: team, Channel: general, TS: w.seed(slackfake.Message{Text: "x"}), User: ann}
	for _, sentence := range []string{
		policy.NotYours, intake.Forgotten, tryLater, intake.NotWaiting, intake.HasEnded, help, inThread,
		intake.NothingRuns, replaced, newRequest, workingIn(""), workingIn("acme/api"),
		undecided([]string{"acme/api", "acme/web"}).Error(), intake.Stopping, intake.Retrying, intake.StillRunning,
		intake.TooFast, thanks, voted + render.VoteSign(render.ActionGood),
		intake.AnsweredBefore(tasks.Answer{By: "@here", Text: "<!channel> & all"}),
	} {
		if err := w.source.client.whisper(t.Context(), o, sentence); err != nil {
			t.Fatal(err)
		}
	}
	messages(t, "words", w.Ephemeral(general, ann))
}

// The states of a question.
func TestSettledQuestions(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, Config{}, slackfake.Config{Now: steady()})
	task := w.task("")
	for i, a := range []tasks.Answer{
		{By: "@ann", Text: tasks.Always}, {By: ann, Text: tasks.Denial("<!channel> & all")}, {Expired: true},
	} {
		for _, q := range []tasks.Question{colours(), consent()} {
			q.Key += fmt.Sprint(i)
			if err := w.source.Ask(t.Context(), task, q); err != nil {
				t.Fatal(err)
			}
			q.Answer = &a
			if err := w.source.Settle(t.Context(), task, q); err != nil {
				t.Fatal(err)
			}
		}
	}
	messages(t, "settled", w.posted(task))
}

// The menu of repositories: without a favourite, with one, and with more than it can offer.
func TestPickers(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, Config{}, slackfake.Config{Now: steady()})
	o := origin{Team: team, Channel: general, TS: w.seed(slackfake.Message{Text: "x"}), User: ann}
	many := []string{"acme/a-name-that-is-longer-than-what-a-menu-shows-of-it-which-is-seventy-five-characters"}
	for i := range 100 {
		many = append(many, fmt.Sprintf("acme/%d", i))
	}
	for _, candidates := range [][]string{{"acme/api", "acme/web"}, many} {
		open, _ := errors.AsType[*errUndecided](undecided(candidates))
		w.source.listener.buttons.picker.show(t.Context(), o, o.taskID(), open)
	}
	list := w.Ephemeral(general, ann)
	messages(t, "picker", list[:1])
	equal(t, "problems of the longest", slackfake.Lint(list[1].Blocks, list[1].Text), []string(nil))
	for _, m := range list[2:] {
		t.Errorf("further: %s", m.Text)
	}
}

func TestDialogs(t *testing.T) {
	t.Parallel()
	memory, err := json.Marshal(dialogMemory{
		Value:  "1700000001000000-slack-c0general c",
		Origin: origin{Team: team, Channel: general, TS: "1700000001.000000", User: ann},
	})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(render.DenyDialog(string(memory)))
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range slackfake.LintView(raw) {
		t.Error(problem)
	}
	goldenJSON(t, "deny", json.RawMessage(raw))
}
