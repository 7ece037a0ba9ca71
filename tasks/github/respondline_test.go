package github

import (
	"testing"

	"github.com/errand-fleet/errand/internal/fake/githubfake"
	"github.com/errand-fleet/errand/tasks"
)

// A comment on a line comes with its review. If all of a review mentions errand, it should be answered as comments,
// and not again as
// a review.
func TestReviewThatSpeaksToUs(t *testing.T) {
	t.Parallel()
	w := withToken(t)
	w.talkers()
	w.hub.Deliver("")
	n, _ := w.own()
	f := w.listen()
	path := w.pull(n).Head + ".go"
	for _, c := range []struct {
		body, line string
		refused    bool
	}{
		{"", "@errand, why?", true},
		{"", "/fix", true},
		{"", "This is wrong.", false},
		{"One more thing.", "@errand, why?", false},
	} {
		known := map[string]bool{}
		for _, task := range f.tasks() {
			known[task.ID] = true
		}
		if _, err := w.hub.Review(t.Context(), repo, n, "ann", "COMMENT", c.body,
			githubfake.Line{Path: path, Line: 1, Body: c.line}); err != nil {
			t.Fatal(err)
		}
		var response []tasks.Task
		for _, task := range f.tasks() {
			if !known[task.ID] && task.Kind == "review_response" {
				response = append(response, task)
			}
		}
		if len(response) != 1 {
			t.Fatalf("%q %q made %+v", c.body, c.line, response)
		}
		switch err := brief(w, response[0]); {
		case c.refused:
			wantInput(t, err, "handled as such")
		case err != nil:
			t.Errorf("%q %q: %v", c.body, c.line, err)
		}
	}
}
