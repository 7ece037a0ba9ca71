package github

import (
	"testing"

	"github.com/errand-fleet/errand/internal/fake/githubfake"
)

// Who may write marks errand's draft as ready, and nobody else's.
func TestReady(t *testing.T) {
	t.Parallel()
	w := withApp(t)
	w.talkers()
	me := must(w.src.forge.Login(w.Context()))
	mine := w.quietOpen(func(pr *githubfake.PR) { pr.Head, pr.User, pr.Draft = "bot/slack-0123456789", me, true })
	theirs := w.quietOpen(func(pr *githubfake.PR) { pr.Head, pr.User, pr.Draft = "theirs", "ann", true })
	f := w.listen()
	draft := func(n int) bool { return w.hub.Pulls(repo)[n-1].Draft }
	w.signs(mine, f.comment(mine, "cleo", "/ready"), "confused")
	if !draft(mine) {
		w.Error("a reader has marked it")
	}
	w.signs(mine, f.comment(mine, "ann", "/ready"), "eyes", "hooray")
	if draft(mine) {
		w.Error("it is still a draft")
	}
	f.comment(theirs, "ann", "/ready")
	w.wait(func() bool { return len(w.ours(theirs)) == 1 })
	if said := w.ours(theirs)[0]; !draft(theirs) || said != "That is not my pull request." {
		w.Errorf("draft %v, said %q", draft(theirs), said)
	}
}
