package github

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/tasks/taskstest"
)

func (f front) audited(want ...string) {
	f.Helper()
	if diff := cmp.Diff(want, must(taskstest.Audited(f.Context(), f.db))); diff != "" {
		f.Errorf("audit log (-want +got):\n%s", diff)
	}
}

// Every command that needs no agent is an entry of the audit log: if it is refused, and if it changes something.
func TestEveryCommandIsAudited(t *testing.T) {
	t.Parallel()
	for _, c := range commands() {
		if c.work != nil || c.word == cmdHelp {
			continue // a task is its own record
		}
		t.Run(strings.TrimPrefix(c.word, "/"), func(t *testing.T) {
			t.Parallel()
			a := newAsking(t)
			q, what := consent, "answer acme/api#1"
			if c.word == cmdAnswer {
				q = colours
			}
			if c.answers {
				a.asks(q)
			} else {
				what = strings.TrimPrefix(c.word, "/") + " acme/api#1"
			}
			text := c.word
			if c.argument {
				text += " 1"
			}
			a.comment(a.n, "cleo", text)
			refused := "github/cleo () " + what + ": 403"
			a.audited(refused)
			a.comment(a.n, "ann", text)
			switch id := a.task.ID; c.word {
			case cmdPause, cmdResume:
				a.audited(refused, "github/ann () "+what+": 200")
			case cmdCancel:
				a.audited(refused, "github/ann () stop: 200 "+id)
			case cmdAnswer:
				a.audited(refused, "github/ann () answer: 200 "+id)
			case cmdApprove, cmdAlways:
				a.audited(refused, "github/ann () approve: 200 "+id)
			case cmdDeny:
				a.audited(refused, "github/ann () deny: 200 "+id)
			case cmdRetry, cmdDismiss, cmdReady: // there is nothing to retry or dismiss, and no draft of errand's
				a.audited(refused)
			default:
				t.Errorf("say in this test what the audit log has of %s", c.word)
			}
		})
	}
}

// So is what people do without a command. Another person may delete a comment.
func TestDeletionAndRetryAreAudited(t *testing.T) {
	t.Parallel()
	w := ticking(t)
	n := w.quietOpen()
	f := w.listen()
	id := f.comment(n, "ann", "@errand why?")
	first := f.only()
	if err := w.hub.DeleteComment(t.Context(), repo, n, id, "octocat"); err != nil {
		t.Fatal(err)
	}
	f.audited("github/octocat () withdraw: 200 " + first.ID)
}
