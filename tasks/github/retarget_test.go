package github

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/internal/fake/githubfake"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/subject"
	"github.com/errand-fleet/errand/tasks/github/thread"
)

// branch creates a branch with its own commit.
func (w *world) branch(name string) {
	w.Helper()
	must(w.repo.Commit(name, "main", map[string]string{name + ".txt": name}, "Begin "+name))
}

// retarget gives a pull request another base.
func (w *world) retarget(n int, base string) {
	w.Helper()
	if err := w.hub.RetargetPR(w.Context(), repo, n, base); err != nil {
		w.Fatal(err)
	}
}

// bases lists the bases of the tasks that have not ended.
func (f front) bases() (all []string) {
	f.Helper()
	for _, t := range f.tasks() {
		all = append(all, must(subject.Of(t)).Base)
	}
	return all
}

func (f front) wantBases(when string, want ...string) {
	f.Helper()
	if diff := cmp.Diff(want, f.bases()); diff != "" {
		f.Errorf("%s, bases of the reviews (-want +got):\n%s", when, diff)
	}
}

// reviewedOnMain returns a pull request onto main with its first review, which has ended. There is a branch dev.
func reviewedOnMain(t *testing.T) (w *world, f front, n int, first tasks.Task) {
	t.Helper()
	w = withApp(t)
	w.branch("dev")
	f = w.listen()
	n = w.open()
	first = f.only()
	if b := w.briefed(first); b.Base != "main" {
		w.Errorf("briefed with %q", b.Base)
	}
	w.close(first, reviewed("None."))
	return w, f, n, first
}

// A review is of a head and a base. Another base is reviewed again, once, also after the first review has ended; another
// title is not.
func TestRetargetedIsReviewedAgain(t *testing.T) {
	t.Parallel()
	w, f, n, first := reviewedOnMain(t)
	if err := w.hub.EditPR(w.Context(), repo, n, "Another title", "Another text"); err != nil {
		w.Fatal(err)
	}
	f.send("pull_request", must(w.hub.Payload("reopened", repo, n, "octocat")), githubfake.SendOptions{})
	f.wantBases("after an edit of the title", "main")
	w.retarget(n, "dev")
	f.wantBases("after another base", "dev")
	second := f.only()
	d, _ := w.hub.LastDelivery("pull_request")
	if err := w.hub.Redeliver(w.Context(), d.GUID); err != nil || f.only().ID != second.ID {
		w.Errorf("redelivered: %v, %+v", err, f.tasks())
	}
	b := w.briefed(second)
	if b.Base != "dev" || b.Since != "" || !strings.Contains(b.System, "Base: dev at ") {
		w.Errorf("briefed with %q since %q: %s", b.Base, b.Since, b.System)
	}
	st := must(f.desk.Status(w.Context(), first.ID))
	want := "Superseded by " + hub.ShortSHA(first.Ref) + " onto dev."
	if st.Ending == nil || st.Ending.Kind != tasks.Superseded || st.Ending.Reason != want {
		w.Errorf("the first review: %+v", st.Ending)
	}
	w.close(second, reviewed("None."))
	w.retarget(n, "main")
	f.wantBases("back", "main")
	if err := brief(w, f.only()); err != nil {
		w.Error(err)
	}
	// With a push and another base, what is new in the head is not all that is new.
	w.close(f.only(), reviewed("None."))
	head := must(w.hub.PushPR(w.Context(), repo, n, map[string]string{"a": "b"}))
	if b := w.briefed(f.only()); b.Since != first.Ref {
		w.Errorf("a push is reviewed since %q", b.Since)
	}
	w.retarget(n, "dev")
	if b := w.briefed(f.only()); b.Since != "" || f.only().Ref != head {
		w.Errorf("a push onto another base is reviewed since %q", b.Since)
	}
}

// A base that comes back is reviewed again although its review has ended: the status of the head is that of the review
// onto the other base by now, or is about to be.
func TestBaseComesBack(t *testing.T) {
	t.Parallel()
	w, f, n, first := reviewedOnMain(t)
	w.retarget(n, "dev")
	f.wantBases("after another base", "dev")
	w.retarget(n, "main")
	f.wantBases("back before the review onto the other has ended", "main")
	if again := f.only(); again.ID == first.ID {
		w.Errorf("the review that has ended: %s", again.ID)
	}
}

// The base is that of the start of the run. The event of it, which comes later, starts nothing again.
func TestBaseIsThatOfTheStart(t *testing.T) {
	t.Parallel()
	w := withApp(t)
	w.branch("dev")
	f := w.listen()
	w.hub.Deliver("")
	n := w.open()
	opened := must(w.hub.Payload("opened", repo, n, "octocat"))
	opened["pull_request"].(map[string]any)["base"].(map[string]any)["ref"] = "gone"
	w.retarget(n, "dev")
	w.hub.Deliver(f.url)
	f.send("pull_request", opened, githubfake.SendOptions{})
	task := f.only()
	if b := w.briefed(task); b.Base != "dev" {
		w.Fatalf("briefed with %q", b.Base)
	}
	edited := must(w.hub.Payload("edited", repo, n, "octocat"))
	edited["changes"] = map[string]any{"base": map[string]any{"ref": map[string]any{"from": "gone"}}}
	f.send("pull_request", edited, githubfake.SendOptions{})
	if got := f.only(); got.ID != task.ID {
		w.Errorf("a review of the same head and base: %+v", got)
	}
	w.close(task, reviewed("None."))
	p := must(w.src.memory.State(w.Context(), thread.Ref{Repo: repo, Number: n}))
	if p.LastBase != "dev" || p.Base != "dev" {
		w.Errorf("recorded %q, reviewed %q", p.Base, p.LastBase)
	}
}

// A poll finds another base whose event was lost, once.
func TestMissedRetarget(t *testing.T) {
	t.Parallel()
	for name, quick := range map[string]bool{"webhook lost": false, "polled": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, look := looker(t)
			pause := DefaultPollEvery
			if quick {
				var quietly func(time.Duration) []githubfake.Call
				f, quietly = polled(t)
				look = func(d time.Duration) { t.Helper(); quietly(d) }
				pause = 20 * time.Second
			}
			f.branch("dev")
			look(time.Hour)
			f.hub.Deliver("")
			n := f.open()
			look(pause)
			first := f.only()
			f.close(first, reviewed("None."))
			f.verdict(first.Ref)
			f.retarget(n, "dev")
			for i := range 3 {
				look(pause)
				f.wantBases(fmt.Sprint("poll ", i), "dev")
			}
		})
	}
}

// A review that could not be made does not look like one that was, and its requester hears why.
func TestRefusedReviewIsNotGreen(t *testing.T) {
	both(t, func(w *world) {
		w.talkers()
		f := w.listen()
		n := w.quietOpen()
		w.hub.Deliver(f.url)
		id := f.comment(n, "ann", "/review")
		task := f.only()
		w.close(task, tasks.Ending{Kind: tasks.Refused, Reason: "acme/api: reference not found.", At: ended})
		w.signs(n, id, "eyes", "confused")
		w.wait(func() bool { return len(w.ours(n)) == 1 })
		if got := w.ours(n)[0]; !strings.Contains(got, "reference not found") {
			w.Errorf("answered %q", got)
		}
		want := "completed neutral " + task.ID
		if !w.src.forge.IsApp() {
			want = "error " + task.ID
		}
		if got := w.lights(task.Ref); len(got) == 0 || got[len(got)-1] != want {
			w.Errorf("lights %q, want %q last", got, want)
		}
	})
}
