package browser

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/errand-fleet/errand/tasks"
)

// focused waits until the title of a task has the focus.
func (t *tab) focused(id string) {
	t.Helper()
	t.wait(fmt.Sprintf("document.activeElement.getAttribute('href') === %q", "/tasks/"+id))
}

// rows returns the IDs of the rows in their order.
func (t *tab) rows() string {
	t.Helper()
	return eval[string](t,
		"[...document.querySelectorAll('#tasks li')].map((row) => row.id.slice('task-'.length)).join(' ')")
}

// keys presses keys wherever the focus is.
func (t *tab) keys(keys string) {
	t.Helper()
	t.do(chromedp.KeyEvent(keys))
}

// People move through the list, search and open a task with the keyboard, but not while they write.
func TestListByKeyboard(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	named := func(prompt string) string {
		return c.submit(func(t *tasks.Task) { t.Prompt = prompt })
	}
	first, second, third := named("one"), named("two"), named("three")
	tb := c.tab(t)
	tb.keys("j")
	tb.focused(third)
	tb.keys("jj")
	tb.focused(first)
	tb.keys("j") // it is the last
	tb.focused(first)
	tb.keys("k")
	tb.focused(second)
	tb.keep(out+"/tasks-selected-light.png", tb.shoot(false))

	tb.keys("/")
	tb.wait("document.activeElement.name === 'text'")
	tb.keys("jk?/")
	tb.wait("document.activeElement.value.endsWith('jk?/')")
	eval[bool](tb, "document.activeElement.value = ''; true")
	tb.keys("\x1b")
	tb.wait("document.activeElement === document.body")
	tb.keys("?")
	tb.wait("document.getElementById('keys').open")
	tb.accessible("keys")
	tb.keep(out+"/tasks-keys-light.png", tb.shoot(false))
	tb.keys("j")
	tb.wait("document.activeElement.closest('dialog') !== null")
	tb.keys("\x1b")
	tb.wait("!document.getElementById('keys').open && document.activeElement === document.body")

	tb.keys("k") // from where the reader was
	tb.focused(third)
	tb.keys("\r")
	tb.find("h1", "Three")
	eval[bool](tb, "history.back(); true")
	tb.find("h1", "Tasks")
	tb.focused(third)
}

// While the reader is in the list, rows change in their places, and new ones are announced.
func TestListLives(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	submit := func() string { return c.submit(func(*tasks.Task) {}) }
	first, second := submit(), submit()
	tb := c.tab(t)
	eval[bool](tb, "window.sameAsEver = true")
	tb.keys("jj")
	tb.focused(first)
	row := fmt.Sprintf("[id='task-%s'] .state", first)

	third := submit()
	tb.wait("!document.getElementById('news').hidden && document.getElementById('news').textContent === '1 new'")
	tb.find("#count-waiting", "3") // a count is never old
	tb.find("#status", "1 new tasks")
	if got, want := tb.rows(), second+" "+first; got != want {
		t.Errorf("the rows moved: %s, want %s", got, want)
	}
	claim := c.Claim(first)
	tb.find(row, "Working") // in its place
	tb.focused(first)
	c.ask(claim, tasks.Question{Key: "k", Text: "Which one?", Asked: time.Now(), Until: time.Now().Add(time.Hour)})
	tb.find(row, "Needs you")
	tb.focused(first)
	tb.keep(out+"/tasks-new-light.png", tb.shoot(false))

	tb.press("#news")
	tb.find("#tasks h2", "Needs you")
	if got, want := tb.rows(), first+" "+third+" "+second; got != want {
		t.Errorf("after the button the rows are %s, want %s", got, want)
	}
	tb.wait("document.getElementById('news').hidden")
	eval[bool](tb, "document.activeElement.blur(); true")
	fourth := submit()
	tb.wait(fmt.Sprintf("document.getElementById(%q) !== null", "task-"+fourth)) // the reader has left the list
	if !eval[bool](tb, "window.sameAsEver === true") {
		t.Error("the page was loaded again")
	}
}

// A filter that has a name is in the menu, in every tab, until it is removed.
func TestSavedViews(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	c.submit(func(t *tasks.Task) { t.Repo = "acme/web" })
	tb := c.tab(t)
	tb.press("#views > summary")
	tb.find(".menu a", "Failed today")
	if !eval[bool](tb, "document.getElementById('save').hidden") {
		t.Error("a list without a filter can be saved")
	}
	tb.open("/?state=waiting&repository=acme/web&text=")
	tb.press("#views > summary")
	tb.do(sendKeys("#save input", "Ours & <b>theirs\n"))
	tb.find("#saved a[aria-current]", "Ours & <b>theirs")
	tb.accessible("views")
	for _, l := range looks {
		tb.as(l)
		tb.fits("views")
		tb.keep(out+"/tasks-views-"+l.name+".png", tb.shoot(false))
	}
	tb.as(looks[0])

	tb.open("/")
	tb.press("#views > summary")
	tb.leave("#saved a")
	if got := eval[string](tb, "location.search"); got != "?repository=acme%2Fweb&state=waiting" {
		t.Errorf("the view leads to %s", got)
	}
	tb.press("#views > summary")
	tb.press("#saved button")
	tb.wait("document.getElementById('saved').children.length === 0")
	tb.keys("\x1b")
	tb.wait("!document.getElementById('views').open")
	tb.open("/")
	tb.wait("document.getElementById('saved').children.length === 0")
}

// A filter stays in the address on every way: by the form, by states and pages, and back.
func TestFiltersStay(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	for range 3 {
		c.submit(func(t *tasks.Task) { t.Repo = "acme/web" })
	}
	tb := c.tab(t)
	tb.open("/?limit=2&repository=acme/web&class=interactive")
	tb.do(sendKeys("input[name=text]", "do it\n"))
	address := func(want string) {
		t.Helper()
		tb.wait(fmt.Sprintf("new URLSearchParams([...new URLSearchParams(location.search)].filter(([n, v]) => v && n !== 'before').sort()).toString() === %q", want))
	}
	address("class=interactive&limit=2&repository=acme%2Fweb&text=do+it")
	tb.leave(".tabs a[href*='state=waiting']")
	address("class=interactive&limit=2&repository=acme%2Fweb&state=waiting&text=do+it")
	tb.leave(".pages a[href*=before]")
	address("class=interactive&limit=2&repository=acme%2Fweb&state=waiting&text=do+it")
	tb.find(".pages a", "newest")
	eval[bool](tb, "history.back(); true")
	tb.find(".pages a", "older")
	tb.wait("document.querySelector('input[name=text]').value === 'do it' && document.querySelector('select[name=class]').value === 'interactive'")
}

// An empty list teaches, by day, by night and on a phone.
func TestEmptyList(t *testing.T) {
	t.Parallel()
	tb := newConsole(t).tab(t)
	for _, l := range looks {
		tb.as(l)
		tb.find(".start", "enqueue chat")
		tb.fits("tasks-empty")
		tb.accessible("tasks-empty")
		tb.keep(out+"/tasks-empty-"+l.name+".png", tb.shoot(false))
	}
}

// Text of people has its own direction, also in a page that is written from left to right. On a phone, a note has two
// lines, and only that of a waiting task gets a capital letter.
func TestWordsInTheList(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	hebrew := c.submit(func(t *tasks.Task) { t.Prompt = "\u05ea\u05e7\u05df \u05d0\u05ea invoice/total.go" })
	long := c.submit(func(t *tasks.Task) { t.Prompt = "long" })
	c.End(c.Claim(long), tasks.Ending{
		Kind: tasks.Refused, Reason: "acme/api " + strings.Repeat("is not one of errand's repositories. ", 9),
	})
	tb := c.tab(t)
	tb.as(looks[2])
	for path, selector := range map[string]string{"/": "#task-" + hebrew + " .title", "/tasks/" + hebrew: "h1"} {
		tb.open(path)
		tb.find(selector, "invoice")
		if !eval[bool](tb, `(() => {
			const text = document.querySelector("`+selector+`").firstChild, at = (i) => {
				const one = document.createRange();
				one.setStart(text, i);
				one.setEnd(text, i + 1);
				return one.getBoundingClientRect().left;
			};
			return at(0) > at(text.length - 1);
		})()`) {
			t.Errorf("%s: the request begins at the left", path)
		}
	}
	tb.open("/")
	if lines := eval[float64](tb, `(() => {
		const note = document.querySelector("#task-`+long+` .note"), style = getComputedStyle(note);
		return Math.round(note.clientHeight / parseFloat(style.lineHeight));
	})()`); lines != 2 {
		t.Errorf("the note has %v lines", lines)
	}
	for id, want := range map[string]string{long: "none", hebrew: "uppercase"} {
		if got := eval[string](tb, `getComputedStyle(document.querySelector("#task-`+
			id+` .note"), "::first-letter").textTransform`); got != want {
			t.Errorf("the first letter of a note is %s, want %s", got, want)
		}
	}
}

// The buttons of a task with several pull requests leave its title enough room.
func TestButtonsLeaveRoom(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	pull := func(repo string) *tasks.Published {
		p := &tasks.Published{Work: tasks.Work{Repo: repo}}
		p.PullRequest.Number, p.PullRequest.URL = 7, "https://github.example/pull/7"
		return p
	}
	id := c.submit(func(t *tasks.Task) { t.Prompt = "rename the field in all services" })
	also := []*tasks.Published{pull("acme/web"), pull("acme/a-repository-with-a-name-that-goes-on-and-on-and-on")}
	c.End(c.Claim(id), tasks.Ending{Kind: tasks.Answered, Published: pull("acme/api"), Also: also})
	tb := c.tab(t)
	for _, l := range looks {
		tb.as(l)
		tb.open("/tasks/" + id)
		tb.fits("the task")
		if got := eval[float64](tb,
			`document.querySelector(".what").clientWidth / document.querySelector(".about").clientWidth`); got < 0.4 {
			t.Errorf("%s: the title has %.2f of the width", l.name, got)
		}
	}
}
