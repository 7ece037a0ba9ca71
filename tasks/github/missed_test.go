package github

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/internal/fake/githubfake"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/subject"
	"github.com/errand-fleet/errand/tasks/github/thread"
)

// Requests made during an outage should be handled afterwards, once; those from before errand should be left.
func TestMissedRemarks(t *testing.T) {
	t.Parallel()
	f, look := looker(t)
	f.talkers()
	f.hub.Deliver("")
	n := f.open()
	own, _ := f.own()
	f.comment(n, "ann", "@errand this was before you came")
	look(time.Hour)
	if err := f.src.memory.ChangeState(t.Context(), thread.Ref{Repo: repo, Number: n}, func(p *subject.State) error {
		p.Paused, p.PausedBy = true, "ben"
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	look(2 * margin) // so that the first one is out of its reach
	kinds := func() (all []string) {
		t.Helper()
		for _, task := range f.tasks() {
			all = append(all, task.Kind+" by "+task.Actor)
		}
		slices.Sort(all)
		return all
	}
	look(DefaultPollEvery)
	if got := kinds(); len(got) != 0 {
		t.Fatalf("before anything was said there are %v", got)
	}
	f.hub.Deliver(f.url)
	f.comment(n, "ann", "@errand you were told of this")
	f.hub.Deliver("")
	mention := f.comment(n, "ann", "@errand why?")
	f.comment(n, "cleo", "Nice weather.")
	resume := f.comment(n, "ann", "/resume")
	must(f.hub.Review(t.Context(), repo, n, "ann", "COMMENT", "",
		githubfake.Line{Path: "change.go", Line: 1, Body: "@errand and here?"}))
	must(f.hub.Review(t.Context(), repo, n, "ann", "COMMENT", "/analyze"))
	must(f.hub.Review(t.Context(), repo, own, "ann", "REQUEST_CHANGES", "Say goodbye as well."))
	want := []string{"analyze by ann", "comment by ann", "comment by ann", "comment by ann", "review_response by ann"}
	for range 2 {
		look(DefaultPollEvery)
		if diff := cmp.Diff(want, kinds()); diff != "" {
			t.Errorf("tasks (-want +got):\n%s", diff)
		}
	}
	f.signs(n, mention, "eyes")
	f.signs(n, resume, "eyes", "hooray")
	if p := must(f.src.memory.State(t.Context(), thread.Ref{Repo: repo, Number: n})); p.Paused {
		t.Error("an order was not carried out")
	}
	// An event that comes after all is nothing new.
	f.hub.Deliver(f.url)
	for _, event := range []string{"issue_comment", "pull_request_review_comment", "pull_request_review"} {
		for _, d := range f.hub.Deliveries(event) {
			if err := f.hub.Redeliver(t.Context(), d.GUID); err != nil {
				t.Error(err)
			}
		}
	}
	if diff := cmp.Diff(want, kinds()); diff != "" {
		t.Errorf("after late events (-want +got):\n%s", diff)
	}
}

// The next poll should read what failed.
func TestMissedRemarksComeAgain(t *testing.T) {
	t.Parallel()
	f, look := looker(t)
	f.talkers()
	f.hub.Deliver("")
	n := f.open()
	look(time.Hour)
	f.comment(n, "ann", "@errand why?")
	for _, route := range []string{"GET /repos/{o}/{r}/issues/comments", "GET /repos/{o}/{r}/pulls/{n}"} {
		f.hub.Fail(route, githubfake.Failure{Status: 502})
		if err := lookAgain(f); err == nil {
			t.Errorf("%s: it went well", route)
		}
		if slices.ContainsFunc(f.tasks(), isComment) {
			t.Errorf("%s: made %+v", route, f.tasks())
		}
	}
	look(time.Hour)
	if got := f.tasks(); !slices.ContainsFunc(got, isComment) {
		t.Errorf("made %+v", got)
	}
}

// GitHub's rate limit ends it, whichever list it comes with.
func TestMissedRemarksAreLimited(t *testing.T) {
	t.Parallel()
	f, look := looker(t)
	look(time.Hour)
	limit := githubfake.Failure{Times: -1, Status: 429, Header: map[string][]string{"Retry-After": {"600"}}}
	for _, route := range []string{"GET /repos/{o}/{r}/pulls/comments", "GET /repos/{o}/{r}/issues/comments"} {
		f.hub.Fail(route, limit) // at last with both
		err := lookAgain(f)
		if wait, limited := f.src.api.RetryAfter(err); !limited || wait < 9*time.Minute {
			t.Errorf("%s: %v", route, err)
		}
	}
}

func TestNumberOfPage(t *testing.T) {
	t.Parallel()
	for page, want := range map[string]int{
		"https://github.com/acme/api/pull/12#issuecomment-3": 12, "https://github.com/acme/api/pull/7#discussion_r9": 7,
		"https://github.com/acme/api/issues/9#issuecomment-3": -9, "": 0,
	} {
		h := new(repositoryPoll).onPage(thread.Remark{URL: page})
		got := h.Number
		if h.OnIssue {
			got = -got
		}
		if got != want {
			t.Errorf("%s: %d, want %d", page, got, want)
		}
	}
}

func isComment(t tasks.Task) bool { return t.Kind == "comment" }
