package browser

import (
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

// A reader finds their way in the steps: search, the failed ones, a link to one, and times in their own zone.
func TestSteps(t *testing.T) {
	t.Parallel()
	s := newScene(newConsole(t))
	tb := s.tab(t)
	_, err := chromedp.Call(tb.ctx, emulation.SetTimezoneOverride,
		emulation.SetTimezoneOverrideParams{TimezoneID: "Asia/Kolkata"})
	tb.must(err)
	tb.open("/tasks/" + s.answered)
	if got, want := eval[string](tb, `document.querySelector(".entry.started time").textContent`), eval[string](tb,
		`new Date(document.querySelector(".entry.started time").dateTime).toLocaleTimeString("en-GB", {timeZone: "Asia/Kolkata"})`); got != want {
		t.Errorf("the first step began at %s, want %s", got, want)
	}

	tb.do(chromedp.KeyEvent("/"))
	tb.wait(`document.activeElement === document.querySelector("#search input")`)
	tb.do(chromedp.KeyEvent("ledger/book"))
	tb.find("#search output", "1 of ")
	tb.wait(`[...document.querySelectorAll("#events > li:not([hidden])")].every((e) => e.textContent.includes("ledger/book"))`)
	tb.do(chromedp.KeyEvent("\x1b"))
	tb.wait(`document.querySelectorAll("#events > li[hidden]").length === 0`)

	tb.find("#errors", "1 failed")
	tb.press("#errors")
	tb.wait(`document.querySelector(".entry.error:target > details[open]") !== null`)
	link := eval[string](tb, "location.href")
	tb.open("/")
	tb.open(link)
	tb.wait(`document.querySelector(".entry.error:target > details[open]") !== null`)
}

// The page follows the run as long as the reader is at its end. Elsewhere it stays where it is and counts what is new.
func TestTail(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	id := c.submit(func(t *tasks.Task) { t.Prompt = "count" })
	claim := c.Claim(id)
	step := func(n int) {
		for range n {
			c.Append(claim, agent.Event{Kind: tasks.Said, Text: "one more", Time: time.Now()})
		}
	}
	step(40)
	tb := c.tab(t)
	tb.open("/tasks/" + id)
	tb.wait(`document.querySelectorAll("#events > li").length === 40`)
	step(2)
	tb.find("#news", "2 new")
	tb.wait("window.scrollY === 0")
	tb.press("#news")
	tb.wait(`document.querySelector("#news").hidden && window.scrollY > 0`)
	step(3)
	tb.wait(`document.querySelectorAll("#events > li").length === 45`)
	tb.wait(`document.querySelector("#news").hidden && document.querySelector("#latest").getBoundingClientRect().bottom <= innerHeight + 80`)
}

// working returns a task that works, and a tab with its page.
func working(t *testing.T) (*console, *store.Claim, *tab) {
	t.Helper()
	c := newConsole(t)
	id := c.submit(func(t *tasks.Task) { t.Prompt = "paint it" })
	claim := c.Claim(id)
	c.Append(claim, agent.Event{Kind: agent.Started, Text: "opus", Time: time.Now()})
	tb := c.tab(t)
	tb.open("/tasks/" + id)
	tb.find("#state", "Working")
	return c, claim, tb
}

// When the agent asks, the open page says so in its tab and by a form, and keeps what the reader has unfolded. When it
// is answered, the page goes back.
func TestQuestionArrives(t *testing.T) {
	t.Parallel()
	c, claim, tb := working(t)
	tb.press(".ids summary")
	eval[bool](tb, "window.sameAsEver = true")
	now := time.Now()
	c.ask(claim, tasks.Question{
		Key: "k", Text: "Which colour?", Options: []string{"red"}, Asked: now, Until: now.Add(time.Hour),
	})
	c.Append(claim, agent.Event{Kind: tasks.Asked, Text: "Which colour?", Time: now})
	tb.find("#state", "Needs you")
	tb.wait(`document.title.startsWith("Needs you: ")`)
	tb.find(".question", "Which colour?")
	tb.wait(`document.querySelector(".ids").open && window.sameAsEver === true`)
	if _, err := c.Desk.Answer(c.Context(), claim.ID(), "k", "ann", "red"); err != nil {
		t.Fatal(err)
	}
	c.Append(claim, agent.Event{Kind: tasks.Replied, Text: "red", Tool: "ann", Time: time.Now()})
	tb.find("#state", "Working")
	tb.wait(`!document.title.startsWith("Needs you") && !document.querySelector(".question")`)
}

// The page of a running task shows the files of its latest checkpoint, and fits beside its steps.
func TestChangesOfARunningTask(t *testing.T) {
	t.Parallel()
	s := newScene(newConsole(t))
	tb := s.tab(t)
	for _, l := range looks {
		tb.as(l)
		tb.open("/tasks/" + s.running)
		tb.find("#timeline.live", "faketime")
		tb.find(".changes", "weeks.go")
		tb.fits("a running task with changes")
	}
}

// A task that is handed back says so by no event: its page looks after a while.
func TestHandedBack(t *testing.T) {
	t.Parallel()
	c, claim, tb := working(t)
	if err := claim.Return(c.Context(), store.Wait{At: time.Now().Add(time.Hour), Why: "the worker stopped"}); err != nil {
		t.Fatal(err)
	}
	eval[bool](tb, "quiet = 19, window.sameAsEver = true")
	tb.find(".headline", "the worker stopped")
	tb.wait(`document.querySelector("#state").textContent !== "Working" && window.sameAsEver === true`)
}
