package github

import (
	"testing"

	"github.com/errand-fleet/errand/tasks/github/settings"
)

// A request should use the repository's model for its kind, regardless of how it was submitted.
func TestModelsByKind(t *testing.T) {
	t.Parallel()
	const file = "models:\n  review: one\n  analyze: two\n  comment: three\n  fix: four\n  check_failure: five\n  merge_conflict: six\n  review_response: seven\n"
	w := withToken(t)
	w.talkers()
	must(w.repo.Commit("main", "", map[string]string{settings.File: file}, "Say what is wanted"))
	w.hub.Deliver("")
	n, _ := w.own()
	theirs := w.fork("theirs")
	f := w.listen()
	for _, body := range []string{"/review", "/analyze", "@errand why?", "/fix", "/fix-ci", "/resolve-conflicts"} {
		f.comment(n, "ann", body)
	}
	if _, err := w.hub.Review(t.Context(), repo, n, "ann", "REQUEST_CHANGES", "No."); err != nil {
		t.Fatal(err)
	}
	f.label(theirs, DefaultForkLabel, "ann")
	want := map[string]string{
		"review": "one", "analyze": "two", "comment": "three", "fix": "four", "check_failure": "five",
		"merge_conflict": "six", "review_response": "seven",
	}
	all := f.tasks()
	if len(all) != 8 {
		t.Errorf("%d tasks", len(all))
	}
	for _, task := range all {
		if task.Options.Model != want[task.Kind] {
			t.Errorf("%s by %q, want %q", task.Kind, task.Options.Model, want[task.Kind])
		}
	}
}
