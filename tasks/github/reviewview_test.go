package github

import (
	stdcmp "cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/findings"
)

// The console sees the findings of a review with what has become of them, without a request to GitHub.
func TestReviewForTheConsole(t *testing.T) {
	both(t, func(w *world) {
		n := w.openCode("ten")
		first := w.pull(n)
		task, e := w.task(n, 0), reviewed("Three.", flaw("mended", 1), flaw("kept", 3), flaw("dismissed", 5))
		w.close(task, e)
		short, comments := strings.NewReplacer(hub.ShortSHA(first.HeadSHA), "<first>"), map[string]string{}
		see := func(task tasks.Task, e tasks.Ending) []string {
			w.Helper()
			r := must(w.src.Capabilities().Reviews.Review(w.Context(), task, e))
			var got []string
			for _, f := range r.Findings {
				name := strings.Fields(f.Claim)[2]
				at := strings.NewReplacer(first.HeadSHA, "<first>", w.pull(n).HeadSHA, "<head>", w.hub.URL(), "", stdcmp.Or(comments[name], "none"), "<comment>").Replace(f.URL)
				got = append(got, short.Replace(fmt.Sprintf("%s %s, new %v, here %v, %s to %s, line %d, %v, %s",
					strings.Trim(name, ","), f.Status, f.New, f.Here, f.First, f.Last, f.Line, f.Evidence != "", at)))
			}
			return got
		}
		blob := "/" + repo + "/blob/<first>/ten.txt"
		if diff := cmp.Diff([]string{
			"mended open, new true, here true, <first> to <first>, line 1, true, " + blob + "#L1",
			"kept open, new true, here true, <first> to <first>, line 3, true, " + blob + "#L3",
			"dismissed open, new true, here true, <first> to <first>, line 5, true, " + blob + "#L5",
		}, see(task, e)); diff != "" {
			w.Error(diff)
		}

		told := w.told(n)
		if err := w.hub.ResolveThread(w.Context(), repo, n, told["dismissed"].Comment, "octocat", true); err != nil {
			w.Fatal(err)
		}
		for name, th := range told {
			comments[name+","] = fmt.Sprintf("discussion_r%d", th.Comment)
		}
		must(w.hub.PushPR(w.Context(), repo, n, map[string]string{"ten.txt": lines(10, 1, "better")}))
		again, ee := w.task(n, 1), w.rechecked(n, map[string]findings.Status{"mended": findings.Fixed, "kept": findings.Open},
			flaw("late", 9))
		w.close(again, ee)
		short = strings.NewReplacer(hub.ShortSHA(first.HeadSHA), "<first>", hub.ShortSHA(w.pull(n).HeadSHA), "<head>")
		pull := fmt.Sprintf("/%s/pull/%d#<comment>", repo, n)
		want := []string{
			"kept open, new false, here true, <first> to <head>, line 3, false, " + pull,
			"late open, new true, here true, <head> to <head>, line 9, true, /" + repo + "/blob/<head>/ten.txt#L9",
			"mended fixed, new false, here true, <first> to <head>, line 0, false, " + pull,
			"dismissed dismissed, new false, here false, <first> to <first>, line 5, false, " + pull,
		}
		if diff := cmp.Diff(want, see(again, ee)); diff != "" {
			w.Error(diff)
		}
		head := hub.ShortSHA(w.pull(n).HeadSHA)
		if r := must(w.src.Capabilities().Reviews.Reported(again, ee)); r.Reported != 1 || r.Head != head || r.Findings != nil {
			w.Errorf("in the list: %+v", r)
		}
		other, failed := task, e
		other.Kind, failed.Kind = "mention", tasks.Failed
		for name, of := range map[string]struct {
			task tasks.Task
			e    tasks.Ending
		}{"no review": {other, e}, "no findings": {task, answered("All is well.")}, "failed": {task, failed}} {
			if r, err := w.src.Capabilities().Reviews.Review(w.Context(), of.task, of.e); r != nil || err != nil {
				w.Errorf("%s: %+v, %v", name, r, err)
			}
		}
	})
}
