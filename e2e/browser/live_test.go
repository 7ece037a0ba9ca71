package browser

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/internal/display"
	"github.com/errand-fleet/errand/internal/fake/modelfake"
)

// live is `worker -standalone` with the real CLI and a model that says what the test wants.
type live struct {
	*tab
	model *modelfake.Server
	token string
}

func newLive(t *testing.T, env ...string) *live {
	t.Helper()
	cli, err := filepath.Abs("../../node_modules/.bin/claude")
	if err != nil {
		t.Fatal(err)
	}
	model := modelfake.New()
	t.Cleanup(model.Close)
	said := program(t, append([]string{
		"ERRAND_SANDBOX=none", "ERRAND_ALLOW_ROOT=true",
		"ERRAND_STATE_DIR=" + t.TempDir(), "ERRAND_CLAUDE=" + cli, "ANTHROPIC_BASE_URL=" + model.URL(),
		"ANTHROPIC_API_KEY=sk-ant-browser",
	}, env...), "worker -standalone", "console", "token")
	base, _, _ := strings.Cut(said[0], "/login?")
	l := &live{newTab(t, base), model, said[1]}

	// The address that is printed opens the console once.
	l.open(said[0])
	l.find("h1", "Tasks")
	again := newTab(t, base)
	again.allow("status of 401")
	again.open(said[0])
	again.find("main", "This link has been used")
	return l
}

// ask gives the fleet a task and goes to its page.
func (l *live) ask(message string) {
	l.Helper()
	req, err := http.NewRequestWithContext(limited(l.T), http.MethodPost, l.base+"/api/chat",
		strings.NewReader(`{"message":"`+message+`"}`))
	if err != nil {
		l.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+l.token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() { _ = resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		l.Fatal(resp.Status)
	}
	l.open("/")
	title := display.Capital(message)
	l.wait(`[...document.querySelectorAll(".task .title")].some((e) => e.textContent.includes("` +
		title + `") && (e.click(), true))`)
	l.find("h1", title)
	eval[bool](l.tab, "window.sameAsEver = true")
}

// The page of a task shows what the agent does while it does it, and how it ended, without being loaded again.
func TestLivePage(t *testing.T) {
	t.Parallel()
	l := newLive(t)
	looked, answer := make(chan struct{}), make(chan struct{})
	l.model.Answer("count", modelfake.Turn{
		Text: "I shall **count**.", Gate: looked,
		Tools: []modelfake.ToolCall{{Name: "Bash", Input: map[string]string{
			"command": "echo one two three", "description": "count",
		}}},
	}, modelfake.Turn{Text: "There are *three*: `one`, `two`, `three`.", Gate: answer})
	l.ask("count to three")
	l.find("#state", "Working")
	close(looked)
	l.find(".entry.text .markdown strong", "count")
	l.find(".entry.tool_use.done .result", "one two three")
	l.find("#state", "Working")
	close(answer)
	l.find("#state", "Done")
	l.find(".answer em", "three")
	l.find("#tokens", "tokens in")
	l.find(".actions button", "Retry")
	if !eval[bool](l.tab, "window.sameAsEver === true") {
		t.Error("the page was loaded again")
	}
	// Loaded again it is the same.
	before := eval[string](l.tab, "document.querySelector('#events').innerText")
	l.open(eval[string](l.tab, "location.pathname"))
	if after := eval[string](l.tab, "document.querySelector('#events').innerText"); after != before {
		t.Errorf("live it was\n%s\nloaded again it is\n%s", before, after)
	}
}

// The chat should show an answer while it is written and when it is complete; a second message should continue the
// conversation.
func TestChatWithTheCLI(t *testing.T) {
	t.Parallel()
	l := newLive(t)
	gate := make(chan struct{})
	l.model.Answer("capital", modelfake.Turn{Text: "It is **Paris**.", Gate: gate})
	l.model.Answer("sure", modelfake.Turn{Text: "Quite. I was asked {{turns}} times."})
	l.open("/chat")
	l.do(sendKeys("textarea[name=message]", "what is the capital of France?"))
	l.leave("button.send")
	l.find("#state", "Working")
	eval[bool](l.tab, "window.sameAsEver = true")
	close(gate)
	l.find("#head .theirs strong", "Paris")
	if !eval[bool](l.tab, "window.sameAsEver === true") {
		t.Error("the page was loaded again")
	}
	l.do(sendKeys("textarea[name=message]", "are you sure?"))
	l.leave("button.send")
	l.find("#head .theirs", "I was asked 2 times.")
}

// The Stop button stops the agent.
func TestStop(t *testing.T) {
	t.Parallel()
	l := newLive(t)
	l.model.Answer("without end", modelfake.Turn{Text: "This takes a while.", Hang: true})
	l.ask("think without end")
	l.find(".entry.text", "This takes a while.")
	l.press("form[action$='/cancel'] button")
	l.find("#state", "Stopped")
	l.find(".sentence", "Stopped in the console")
	l.find(".answer.partial", "This takes a while.")
}
