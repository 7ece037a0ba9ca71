package browser

import (
	"fmt"
	"os"
	"strconv"
	"testing"
)

// pages are all that there are; a new one is a line here.
func (s *scene) pages() []visit {
	return []visit{
		{name: "tasks", path: "/", want: "Fix the flaky test"},
		{
			name: "tasks-filtered", path: "/?state=ended&ending=failed&repository=acme/payments",
			want: "Bump the Go version",
		},
		{name: "tasks-none", path: "/?text=nothing+has+these+words", want: "No task matches"},
		{name: "tasks-reviews", path: "/?class=review", want: "Load fonts"},
		{name: "task-running", path: "/tasks/" + s.running, want: "faketime"},
		{name: "task-asking", path: "/tasks/" + s.asking, want: "Teal"},
		{name: "task-waiting", path: "/tasks/" + s.waiting, want: "Waiting"},
		{name: "task-answered", path: "/tasks/" + s.answered, want: "truncates"},
		{name: "changes", path: "/tasks/" + s.answered + "/changes", want: "rounded half away"},
		{name: "task-reviewed", path: "/tasks/" + s.reviewed, want: "One finding."},
		{name: "task-failed", path: "/tasks/" + s.failed, want: "credit balance"},
		{name: "task-long", path: "/tasks/" + s.long, want: "Stopped by Ann Lee"},
		{name: "log", path: "/tasks/" + s.answered + "/log", want: "TestTotal"},
		{name: "chat", path: "/chat", want: "Repository"},
		{name: "chat-conversation", path: "/chat/fridays", want: "There are 53."},
		{name: "costs", path: "/costs", want: "Total"},
		{name: "costs-groups", path: "/costs?by=day&by=person&by=repository", want: "slack/Ann-Lee"},
		{name: "config", path: "/config", want: "REDIS_URL"},
		{name: "audit", path: "/audit?verify=1&what=log&since=2026-01-01", want: "is intact"},
		{name: "fleet", path: "/fleet", want: "mill-3"},
		{name: "fleet-services", path: "/fleet?services=1", want: "hold the credentials for the model"},
		{name: "not-found", path: "/nowhere", want: "no such page", status: 404},
		{name: "no-task", path: "/tasks/1700000000000000-chat-x", want: "No such task", status: 404},
	}
}

// visit is a page to look at.
type visit struct {
	name, path string
	want       string // words on it
	status     int    // 0: 200
	picture    string // of the demo: the look in which the README shows it; empty: it does not
}

// Every page is as it should be, by day, by night and on a phone: no errors, nothing that a reader with other senses
// would miss, and no scrolling sideways.
func TestPages(t *testing.T) {
	t.Parallel()
	s := newScene(newConsole(t))
	for _, l := range looks {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			tb := s.tab(t)
			tb.as(l)
			for _, v := range s.pages() {
				tb.visit(v)
				tb.fits(v.name)
				tb.accessible(v.name)
				tb.keep(fmt.Sprintf("%s/%s-%s.png", out, v.name, l.name), tb.shoot(true))
				tb.check()
			}
		})
	}
}

// visit opens a page and sees that it is the one.
func (t *tab) visit(v visit) {
	t.Helper()
	if v.status != 0 {
		t.allow(fmt.Sprintf("status of %d", v.status))
	}
	t.open(v.path)
	t.find("main", v.want)
}

// fits checks that nothing is wider than the window.
func (t *tab) fits(page string) {
	t.Helper()
	wide := eval[string](t, `(() => {
		const width = document.documentElement.clientWidth;
		if (document.documentElement.scrollWidth <= width) return "";
		// Text may overflow a box that itself does not.
		const right = (e) => Math.max(e.getBoundingClientRect().right, getComputedStyle(e).overflowX === "visible" && e.getBoundingClientRect().left + e.scrollWidth);
		return [...document.body.querySelectorAll("*")].filter((e) => right(e) > width + 1)
			.map((e) => e.tagName + "." + e.className).join(", ") || "something";
	})()`)
	if wide != "" {
		t.Errorf("%s scrolls sideways: %s", page, wide)
	}
}

// accessible checks a page with all rules of axe-core, best practices included.
func (t *tab) accessible(page string) {
	t.Helper()
	t.accessibleIn(page, "html")
}

// accessibleIn checks a part of a page.
func (t *tab) accessibleIn(page, selector string) {
	t.Helper()
	source, err := os.ReadFile("node_modules/axe-core/axe.min.js")
	if err != nil {
		t.Fatalf("%v (make browser)", err)
	}
	type fault struct{ ID, Impact, Help, Where string }
	for _, f := range eval[[]fault](t, string(source)+`;
		axe.run(`+strconv.Quote(selector)+`).then((r) => r.violations.map((v) => ({
			ID: v.id, Impact: v.impact, Help: v.help, Where: v.nodes.map((n) => n.html + " " + n.any.map((a) => a.message).join(" ")).join("\n"),
		})))`) {
		t.Errorf("%s: %s: %s (%s)\n%.1500s", page, f.Impact, f.Help, f.ID, f.Where)
	}
}

// Without scripts, people can read everything and stop a task.
func TestWithoutScripts(t *testing.T) {
	t.Parallel()
	s := newScene(newConsole(t))
	tb := s.tab(t)
	tb.scripts(false)
	tb.allow("status of 404")
	for _, v := range s.pages() {
		tb.open(v.path)
		tb.shows(v.want)
	}
	tb.open("/tasks/" + s.running)
	tb.shows("Reload to see more.")
	tb.leave("form[action$='/cancel'] button")
	tb.shows("Stopping") // until its worker hears of it
	if got := s.Status(s.running).Cancel; got != "console" {
		t.Errorf("it is cancelled by %q", got)
	}
}
