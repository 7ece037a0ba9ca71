package browser

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// The demo leaves a task in each state in the console, with the real CLI behind it. The pictures of the documents
// are of it.
func TestDemo(t *testing.T) {
	t.Parallel()
	found := program(t, []string{"PATH=" + os.Getenv("PATH")}, "demo", "console ", "All of it stays up")
	link := strings.TrimSpace(found[0])
	base, _, _ := strings.Cut(link, "/login?")
	tb := newTab(t, base)
	tb.open(link)
	for _, l := range looks {
		tb.as(l)
		for _, v := range []visit{
			{name: "tasks", want: "Explain the rounding", picture: "light"},
			{name: "task-answered", path: "Add a test for totals", want: "TestTotalKeepsCents", picture: "dark"},
			{name: "failed", path: "Rewrite the history", want: "budget"},
			{name: "stopped", path: "Delete all unused code", want: "topped"},
			{name: "task-running", path: "Find the flaky test", want: "Run the tests again", picture: "phone"},
			{name: "asking", path: "Store totals as integer cents", want: "Keep Total"},
			{name: "waiting", path: "Explain the rounding", want: "1 of 1"},
			{name: "paused", path: "Make the checkout usable", want: "resumes about"},
			{name: "reviewed", path: "Review pull request", want: "drifts", picture: "light"},
			{name: "chat", path: "Which packages", want: "invoice"},
		} {
			path := "/"
			if v.path != "" {
				tb.open("/")
				path = eval[string](tb,
					fmt.Sprintf(`[...document.querySelectorAll("a")].find((a) => a.textContent.includes(%q)).pathname`, v.path))
			}
			tb.open(path)
			tb.find("main", v.want)
			tb.fits(v.name)
			tb.accessible(v.name)
			tb.keep(fmt.Sprintf("%s/demo-%s-%s.png", out, v.name, l.name), tb.shoot(true))
			if *pictures && v.picture == l.name {
				tb.keep(fmt.Sprintf("%s/%s.png", made, v.name), tb.shoot(false))
			}
			tb.check()
		}
	}
}
