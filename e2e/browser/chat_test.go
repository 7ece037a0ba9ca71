package browser

import (
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
)

// A conversation from its first word to its answer, and what is being written meanwhile is not lost when the page
// brings itself up to date.
func TestChat(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	c.alive(store.Worker{ID: "mill-1", Host: "mill-1.acme.example", Slots: 4}, cli)
	tb := c.tab(t)
	tb.allow("status of 503") // no worker answers the request for agents and models
	tb.open("/chat")
	eval[bool](tb, `(() => { // paste a text file and a picture, one after the other
		for (const [name, type] of [["notes.txt", "text/plain"], ["shot.png", "image/png"]]) {
			const data = new DataTransfer();
			data.items.add(new File(["x"], name, {type}));
			document.querySelector("textarea").dispatchEvent(new ClipboardEvent("paste", {clipboardData: data, bubbles: true, cancelable: true}));
		}
		return true;
	})()`)
	tb.wait("[...document.querySelector('input[type=file]').files].map((f) => f.name).join() === 'notes.txt,shot.png'")
	eval[bool](tb, "document.querySelector('input[type=file]').value = ''; true")
	tb.do(sendKeys("textarea[name=message]", "how many <b>are</b> there?"))
	tb.do(sendKeys("textarea[name=message]", "\r"))
	tb.find(".mine .markdown", "how many <b>are</b> there?")
	tb.wait("document.readyState === 'complete'")
	eval[bool](tb, "window.sameAsEver = true")

	found, err := c.Desk.List(t.Context(), desk.Filter{Source: "chat", Limit: 1})
	if err != nil || len(found.Tasks) != 1 {
		t.Fatalf("%+v, %v", found, err)
	}
	claim := c.Claim(found.Tasks[0].Task.ID)
	now := time.Now()
	c.Append(claim, at(now, agent.Event{Kind: agent.Started, Text: "claude-opus-4-8"},
		agent.Event{Kind: agent.Text, Text: "I shall **cou"})...)
	tb.find(".entry.text .words", "I shall **cou") // streamed, not collected
	ask := func(key, text string) {
		t.Helper()
		c.ask(claim, tasks.Question{Key: key, Text: text, Asked: now, Until: now.Add(time.Hour)})
		c.Append(claim, at(now, agent.Event{Kind: agent.Text, Text: "nt** them. "},
			agent.Event{Kind: "asked", Text: text})...)
		tb.find(".question", text)
	}
	ask("1", "All of them?")
	tb.find(".entry.text .markdown strong", "count")
	tb.do(sendKeys(".question input[name=answer]", "but the small ones"))
	ask("2", "Twice?")
	tb.wait("document.querySelector('.question input[name=answer]').value === 'but the small ones'")
	tb.do(sendKeys(".question input[name=answer]", ", please")) // where it was left
	tb.wait("document.activeElement.value === 'but the small ones, please'")

	c.End(claim, tasks.Ending{
		Kind: tasks.Answered, Result: agent.Result{Text: "There are *three*: <b>.", Duration: time.Second},
		Published: &tasks.Published{Work: tasks.Work{Repo: "acme/payments", Branch: "errand/three"}},
	})
	tb.find(".theirs.markdown em", "three")
	tb.find(".theirs.markdown", "three: <b>.")
	tb.find(".published", "errand/three")
	if !eval[bool](tb, "window.sameAsEver === true") {
		t.Error("the page was loaded again")
	}
	for _, l := range looks {
		tb.as(l)
		tb.fits("chat")
		tb.keep(out+"/chat-answered-"+l.name+".png", tb.shoot(true))
	}
}

// A message that could not be sent is in the form again, once, and only for its author; one that was sent is not.
func TestChatWithoutLogin(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	c.alive(store.Worker{ID: "mill-1", Host: "mill-1.acme.example", Slots: 4}, cli)
	tb := c.tab(t)
	tb.allow("status of 503") // no worker answers the request for agents and models
	tb.allow("status of 401")
	tb.open("/chat")
	tb.do(sendKeys("textarea[name=message]", "count them all"))
	eval[bool](tb, "fetch('/logout', {method: 'POST'}).then(() => true)")
	tb.do(sendKeys("textarea[name=message]", "\r"))
	tb.find("main", "was not done")
	tb.accessible("an action without a login")
	tb.press("main a.button")
	tb.do(sendKeys("input[name=token]", token+"\n"))
	tb.wait("location.pathname === '/chat' && document.querySelector('textarea')?.value === 'count them all'")
	tb.do(sendKeys("textarea[name=message]", "\r"))
	tb.find(".mine .markdown", "count them all")
	tb.wait("location.hash === '#latest' && document.querySelector('textarea')?.value === ''")

	// the server does not answer
	eval[bool](tb, "document.querySelector('form.write').addEventListener('submit', (e) => e.preventDefault()); true")
	tb.do(sendKeys("textarea[name=message]", "and twice\r"))
	eval[bool](tb, "document.querySelector('textarea').value = ''; location.reload(); true") // or the browser restores it
	tb.wait("document.querySelector('.send')?.disabled === false && document.querySelector('textarea').value === 'and twice'")
	// another way to the latest part of the conversation, such as after Stop
	at := eval[string](tb, "location.pathname")
	tb.open("/fleet")
	tb.open(at + "#latest")
	tb.wait("document.querySelector('textarea')?.value === 'and twice'")
	// another person in this tab
	eval[bool](tb, "for (const key of ['draft', 'draft ', 'draft Ann ']) sessionStorage.setItem(key, 'mine'); true")
	tb.open("/chat")
	tb.wait("document.readyState === 'complete' && document.querySelector('textarea').value === ''")
	// nothing is left for the next one at this machine
	tb.open("/fleet")
	tb.press(".user summary")
	tb.press("form[action='/logout'] button")
	tb.wait("location.pathname === '/login' && sessionStorage.length === 0")
}
