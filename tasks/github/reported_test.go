package github

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/internal/fake/githubfake"
)

// What broke other bots, by their public reports.

// A mail program writes the mail that it answers below the answer, with lines of Windows, and GitHub shows all of it as
// the comment. The command is the answer alone (kubernetes/test-infra#9834, dependabot/feedback#277).
func TestCommandByMail(t *testing.T) {
	t.Parallel()
	w := withToken(t)
	w.talkers()
	n := w.quietOpen()
	f := w.listen()
	const mail = "\r\n\r\nOn Fri, Oct 19, 2018, 20:03 Bob (Bobby) Zhao <notifications@github.com>\r\nwrote:\r\n\r\n" +
		"> @errand review this\r\n>\r\n> /fix\r\n>\r\n> —\r\n> You are receiving this because you were mentioned.\r\n"
	w.signs(n, f.comment(n, "ann", "/pause"+mail), "eyes", "hooray")
	f.comment(n, "ann", "@errand why?"+mail)
	task := f.only()
	if prompt := w.briefed(task).Prompt.Text; task.Kind != "comment" || !strings.Contains(prompt, "why?") {
		t.Errorf("%s: %s", task.Kind, prompt)
	}
	w.signs(n, f.comment(n, "ann", "/cancel\r\n\r\n-- \r\nSent from my phone\r\n"), "eyes", "hooray")
	if all := f.tasks(); len(all) > 0 {
		t.Errorf("not cancelled: %+v", all)
	}
}

// Whoever has deleted their account is null in what GitHub answers (anthropics/claude-code-action#1489).
func TestRemarksOfDeletedAccounts(t *testing.T) {
	t.Parallel()
	w := ticking(t)
	n := w.quietOpen()
	f := w.listen()
	f.comment(n, "ann", "@errand why?")
	task := f.only()
	const remark = `[{"id":7,"user":null,"body":"Because of the cache.","author_association":"NONE",` +
		`"created_at":"2026-11-22T08:00:00Z","updated_at":"2026-11-22T08:00:00Z",` +
		`"html_url":"https://github.com/acme/api/pull/1#x","path":"change.go","submitted_at":"2026-11-22T08:00:00Z"}]`
	for _, list := range []string{
		listComments, "GET /repos/{o}/{r}/pulls/{n}/comments", "GET /repos/{o}/{r}/pulls/{n}/reviews",
	} {
		w.hub.Fail(list, githubfake.Failure{
			Status: http.StatusOK, Body: remark, Header: http.Header{"Content-Type": {"application/json"}}, Times: -1,
		})
	}
	prompt := w.briefed(task).Prompt.Text
	if n := strings.Count(prompt, `<outside what="comment of @ghost, none, `); n != 3 {
		t.Errorf("%d remarks of deleted accounts: %s", n, prompt)
	}
}

// Branches may have nearly every character (anthropics/claude-code-action#616 and #751, claude-code#47439).
func TestOddBranches(t *testing.T) {
	t.Parallel()
	for i, name := range []string{"feature/テスト", "#8982-bugfix", "feature/#12+50%&a=b", "it's(1)", "dependabot/npm/@x/y-1.0"} {
		w := withToken(t)
		w.talkers()
		f := w.listen()
		n := w.open(func(pr *githubfake.PR) { pr.Head = name })
		if len(f.tasks()) != 1 {
			t.Errorf("%s: no review: %s", name, w.logs)
			continue
		}
		w.briefed(f.only())
		f.cancel(f.only().ID)
		f.comment(n, "ann", fmt.Sprint("@errand why? ", i))
		if b := w.briefed(f.only()); b.Into != name {
			t.Errorf("%s: %+v", name, b)
		}
	}
}
