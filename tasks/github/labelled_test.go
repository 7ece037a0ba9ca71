package github

import (
	"slices"
	"testing"
	"time"

	"github.com/errand-fleet/errand/internal/fake/githubfake"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/autofix"
)

// GitHub lets people without write access set labels. The label should count only if its author has write access,
// which is checked once.
func TestConflictsLabelOfWhomever(t *testing.T) {
	t.Parallel()
	f, look := looker(t)
	f.hub.Deliver("")
	f.hub.SetPermission(repo, "ann", "write")
	f.hub.SetPermission(repo, "cleo", "read")
	n := f.open(func(pr *githubfake.PR) { pr.Head = "labelled" })
	f.label(n, autofix.ConflictsLabel, "cleo")
	must(f.repo.Commit("main", "", map[string]string{"labelled.go": "other\n"}, "Collide"))
	conflicts := func() []tasks.Task { // beside the review that the pull request gets
		return slices.DeleteFunc(f.tasks(), func(task tasks.Task) bool { return task.Kind != "merge_conflict" })
	}
	look(time.Hour)
	refused := conflicts()[0]
	wantInput(t, brief(f.world, refused), "cleo has no write access to acme/api.")
	if _, err := f.desk.Withdraw(t.Context(), refused.ID); err != nil {
		t.Fatal(err)
	}
	look(time.Hour)
	if got := conflicts(); len(got) != 0 {
		t.Errorf("after it was refused there are %+v", got)
	}

	// The approval by another person should count while it is valid.
	if err := f.hub.UnlabelPR(repo, n, autofix.ConflictsLabel); err != nil {
		t.Fatal(err)
	}
	f.label(n, "Errand:Resolve-Conflicts", "ann") // GitHub keeps the case in which a label was created
	look(time.Hour)
	task := conflicts()[0]
	lift := f.hub.Fail(collaborator, githubfake.Failure{Times: -1, Status: 500})
	if err := brief(f.world, task); err == nil {
		t.Error("briefed although GitHub does not say what she may do")
	}
	lift()
	if err := f.hub.UnlabelPR(repo, n, "Errand:Resolve-Conflicts"); err != nil {
		t.Fatal(err)
	}
	wantInput(t, brief(f.world, task), "no longer has the label "+autofix.ConflictsLabel+".")
	f.label(n, autofix.ConflictsLabel, "ann")
	if err := brief(f.world, task); err != nil {
		t.Error(err)
	}
}

// People with triage access can request a review on GitHub, but only those with write access should get one.
func TestReviewRequestedByWhomever(t *testing.T) {
	t.Parallel()
	w := withApp(t)
	w.hub.SetPermission(repo, "ann", "write")
	w.hub.SetPermission(repo, "cleo", "read")
	n := w.quietOpen()
	f := w.listen()
	ask := func(sender string) {
		w.Helper()
		p := must(w.hub.Payload("review_requested", repo, n, sender))
		p["requested_reviewer"] = map[string]any{"login": must(w.src.forge.Login(w.Context()))}
		f.send("pull_request", p, githubfake.SendOptions{})
	}
	ask("cleo")
	wantInput(w.T, brief(w, f.only()), "cleo has no write access to acme/api.")
	if _, err := f.desk.Withdraw(w.Context(), f.only().ID); err != nil {
		w.Fatal(err)
	}
	ask("ann")
	if err := brief(w, f.only()); err != nil {
		w.Error(err)
	}
}

// Who runs errand's check again, or all checks, gets a review of the same head, also of a draft, and one only until it
// has ended.
func TestCheckIsRunAgain(t *testing.T) {
	t.Parallel()
	w := withApp(t)
	w.hub.SetPermission(repo, "ann", "write")
	f := w.listen()
	n := w.open()
	first := f.only()
	w.close(first, reviewed("None."))
	if err := w.hub.ChangePR(t.Context(), repo, n, "converted_to_draft", "octocat"); err != nil {
		t.Fatal(err)
	}
	run := w.hub.CheckRuns(repo, first.Ref)[0].ID
	suite := func(sender map[string]any) {
		f.send("check_suite", map[string]any{
			"action": "rerequested", "repository": map[string]any{"full_name": repo}, "sender": sender,
			"installation": map[string]any{"id": 5},
			"check_suite":  map[string]any{"head_sha": first.Ref, "head_branch": nil, "updated_at": "2026-11-27T17:12:18Z"},
		}, githubfake.SendOptions{})
	}
	for _, rerun := range []func(){
		func() {
			if err := w.hub.Rerequest(t.Context(), repo, run, "ann"); err != nil {
				t.Fatal(err)
			}
		},
		func() { suite(map[string]any{"login": "ann", "type": "User"}) },
	} {
		rerun()
		rerun()
		again := f.only()
		if again.Kind != "review" || again.Actor != "ann" || again.Ref != first.Ref || again.ID == first.ID {
			t.Errorf("run again: %+v", again)
		}
		if err := brief(w, again); err != nil {
			t.Error(err)
		}
		w.close(again, reviewed("None."))
		if len(w.hub.CheckRuns(repo, first.Ref)) < 2 {
			t.Error("there is no other check")
		}
		if _, err := f.desk.Withdraw(t.Context(), again.ID); err != nil {
			t.Fatal(err)
		}
	}
	if suite(map[string]any{"login": "linter[bot]", "type": "Bot"}); len(f.tasks()) > 0 {
		t.Errorf("run again by a bot: %+v", f.tasks())
	}
}

// Where errand's check is required, a merge queue waits for it on its own commits, which nobody reviews.
func TestMergeQueue(t *testing.T) {
	t.Parallel()
	w := withApp(t)
	f := w.listen()
	commit := must(w.repo.Commit("gh-readonly-queue/main/pr-1-abc", "main", map[string]string{"a": "b"}, "Merge"))
	for want, branch := range []string{"change", "gh-readonly-queue/main/pr-1-abc"} {
		for range 2 {
			f.send("check_suite", map[string]any{
				"action": "requested", "sender": map[string]any{"login": "ann", "type": "User"},
				"repository":   map[string]any{"full_name": repo, "html_url": "https://github.example/acme/api"},
				"installation": map[string]any{"id": 5},
				"check_suite":  map[string]any{"head_sha": commit, "head_branch": branch},
			}, githubfake.SendOptions{})
		}
		runs := w.hub.CheckRuns(repo, commit)
		if len(runs) != want || want > 0 && (runs[0].Name != "errand" || runs[0].Conclusion != "skipped") {
			t.Errorf("on %s: %+v", branch, runs)
		}
	}
}
