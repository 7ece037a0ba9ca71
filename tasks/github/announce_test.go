package github

import (
	"strings"
	"testing"

	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/internal/fake/githubfake"
)

// Findings that are only in the summary should be announced: by the summary itself when it is created, by a review
// when it is edited, once.
func TestNewFindingsInTheSummary(t *testing.T) {
	both(t, func(w *world) {
		n := w.openCode("ten")
		w.close(w.task(n, 0), reviewed("One.", flaw("outside", 50)))
		if v := w.hub.Reviews(repo, n); len(v) > 0 {
			w.Fatalf("the first summary notifies by itself: %+v", v)
		}
		w.close(w.task(n, 0), reviewed("One.", flaw("outside", 50))) // after an answer that was lost
		if v := w.hub.Reviews(repo, n); len(v) > 0 {
			w.Fatalf("again: %+v", v)
		}
		must(w.hub.PushPR(w.Context(), repo, n, map[string]string{"other.txt": "x\n"}))
		task, e := w.task(n, 1), w.rechecked(n, nil, flaw("outside", 50), flaw("new", 70))
		w.hub.Fail("PATCH /repos/{o}/{r}/issues/comments/{id}", githubfake.Failure{Status: 502})
		if err := w.report(task).Close(w.Context(), e); err == nil {
			w.Error("closed although the summary could not be edited")
		}
		w.close(task, e)
		w.close(task, e)
		all := w.hub.Reviews(repo, n)
		if len(all) != 1 || !strings.Contains(all[0].Body, "-->\n1 finding at "+hub.ShortSHA(w.pull(n).HeadSHA)+
			", in the summary:\n\n- 🟠 **major**") ||
			!strings.Contains(all[0].Body, "It is new") || strings.Contains(all[0].Body, "It is outside") {
			w.Errorf("reviews: %+v", all)
		}
		if body := w.hub.Comments(repo, n)[0].Body; !strings.Contains(body, "It is new") ||
			strings.Count(body, "Read it.") != 2 {
			w.Errorf("the summary has not all in full: %s", body)
		}
		// What has no thread is ended by a word.
		f := w.listen()
		w.hub.SetPermission(repo, "ann", "write")
		body := w.hub.Comments(repo, n)[0].Body
		_, id, _ := strings.Cut(body[strings.Index(body, "It is new"):], "`/dismiss ")
		id, _, _ = strings.Cut(id, "`")
		for said, sign := range map[string]string{"": "confused", " 0123456789ab": "confused", " " + id: "hooray"} {
			w.signs(n, f.comment(n, "ann", "/dismiss"+said), "eyes", sign)
		}
		w.wait(func() bool { return len(w.ours(n)) == 3 }) // with the summary
		w.hub.Deliver("")
		must(w.hub.PushPR(w.Context(), repo, n, map[string]string{"other.txt": "y\n"}))
		b := must(w.src.Brief(w.Context(), w.task(n, 2), ""))
		if open, final, _ := strings.Cut(b.System,
			`<outside what="settled findings">`); strings.Contains(open, "It is new") ||
			!strings.Contains(final, "It is new") {
			w.Errorf("the agent is told %s", b.System)
		}
		// Nothing is new, so nothing is announced.
		w.close(w.task(n, 2), w.rechecked(n, nil, flaw("outside", 50), flaw("new", 70)))
		if got := len(w.hub.Reviews(repo, n)); got != 1 {
			w.Errorf("%d reviews", got)
		}
		if body := w.hub.Comments(repo, n)[0].Body; strings.Contains(body, "It is new") ||
			!strings.Contains(body, "It is outside") {
			w.Errorf("the summary still says %s", body)
		}
	})
}
