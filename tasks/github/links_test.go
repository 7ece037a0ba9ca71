package github

import (
	"encoding/json"
	"testing"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/subject"
)

// A task links to its pull request, and to the comment that requested it.
func TestLinks(t *testing.T) {
	t.Parallel()
	pull, comment := "https://github.com/acme/api/pull/7", "https://github.com/acme/api/pull/7#issuecomment-1"
	for name, test := range map[string]struct {
		Origin subject.Origin
		want   tasks.Links
	}{
		"a review": {subject.Origin{URL: pull}, tasks.Links{Thread: pull, PullRequest: pull}},
		"a comment": {
			subject.Origin{URL: pull, Asked: &subject.Request{URL: comment}}, tasks.Links{Thread: comment, PullRequest: pull},
		},
		"an issue": {
			subject.Origin{URL: "https://github.com/acme/api/issues/8"},
			tasks.Links{Thread: "https://github.com/acme/api/issues/8"},
		},
	} {
		body, err := json.Marshal(test.Origin)
		if err != nil {
			t.Fatal(err)
		}
		if got := new(Source).Links(tasks.Task{Origin: body}); got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}
