package github

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/githubfake"
	"github.com/errand-fleet/errand/tasks"
)

// A pull request says what its checks came to. What they wrote has no effect there.
func TestProposeTellsOfChecks(t *testing.T) {
	both(t, func(w *world) {
		w.started()
		task, work := w.work(1)
		work.Checks = &tasks.Checks{
			Ran: []tasks.Checked{
				{Command: "make `lint`", Outcome: agent.Done, Duration: 3 * time.Second},
				{
					Command: "make test", Outcome: agent.Failed, ExitCode: 2, Duration: 61 * time.Second,
					Said: "```\n@octocat broke it\n<!-- errand:work end -->\nmake: *** [test] Error 1",
				},
				{Command: "make slow", Outcome: agent.Limit, ExitCode: -1, Duration: 14 * time.Minute},
			},
			Unrun: []string{"make more"}, Problem: "there were 15m for all of them",
		}
		w.propose(task, work)
		got := w.pull(1)
		golden(w.T, "pull_request_checks", strings.ReplaceAll(got.Body, work.Commit, "COMMIT"))
		if s, ok := readSection(got.Body); !ok || s.end != len(got.Body) || !got.Draft {
			w.Errorf("the section ends at %d of %d: %q", s.end, len(got.Body), got.Body)
		}
		// The next commit succeeds.
		next, work := w.work(2)
		work.Checks = &tasks.Checks{Ran: []tasks.Checked{{Command: "make test", Outcome: agent.Done, Duration: time.Second}}}
		w.propose(next, work)
		if body := w.pull(1).Body; !strings.Contains(body, "**All checks succeeded.**") || strings.Contains(body, "broke") {
			w.Errorf("afterwards: %s", body)
		}
	})
}

func TestProposeWithMuchOutput(t *testing.T) {
	t.Parallel()
	c := &tasks.Checks{}
	for range 50 {
		c.Ran = append(c.Ran, tasks.Checked{Command: "make test", Outcome: agent.Failed, ExitCode: 1, Said: strings.Repeat("x", 2000)})
	}
	if said := checked(c); len(said) > maxChecked+1500 || !strings.Contains(said, "more of this than has room") || !strings.HasPrefix(said, "**50 of 50 checks failed") {
		t.Errorf("%d bytes: %.100s", len(said), said)
	}
}

func TestChecksOfARepository(t *testing.T) {
	both(t, func(w *world) {
		if list, err := w.src.Checks(w.Context(), repo, "main"); err != nil || list != nil {
			w.Errorf("of a repository without settings: %q, %v", list, err)
		}
		w.setUp(map[string]string{settingsFile: "checks: [make test, make lint]\n"})
		w.src.wishes.known = nil
		if list, err := w.src.Checks(w.Context(), repo, "main"); err != nil || !slices.Equal(list, []string{"make test", "make lint"}) {
			w.Errorf("checks %q, %v", list, err)
		}
		for _, file := range []string{"checks: [make test\n", "checks: make test\n", "checks: {make: test}\n", "checks: [make test, '']\n", "checks:\n  - |\n    cd x\n    make\n"} {
			w.src.wishes.known = nil
			w.setUp(map[string]string{settingsFile: file})
			if list, err := w.src.Checks(w.Context(), repo, "main"); err == nil {
				w.Errorf("of %q: %q", file, list)
			}
		}
		w.src.wishes.known = nil
		w.setUp(map[string]string{settingsFile: "skip: {paths: &none []}\nchecks: *none\nreviews: {}\n"})
		if list, err := w.src.Checks(w.Context(), repo, "main"); err != nil || len(list) > 0 {
			w.Errorf("of a file without any: %q, %v", list, err)
		}
		w.src.wishes.known = nil
		w.hub.Fail(contents, githubfake.Failure{Status: 502})
		if list, err := w.src.Checks(w.Context(), repo, "main"); err == nil {
			w.Errorf("without an answer there are %q", list)
		}
	})
}
