package github

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/forge"
	"github.com/errand-fleet/errand/internal/fake/githubfake"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/settings"
)

func TestChecksOfARepository(t *testing.T) {
	both(t, func(w *world) {
		if list, err := w.src.VerificationCommands(w.Context(), repo); err != nil || list != nil {
			w.Errorf("of a repository without settings: %q, %v", list, err)
		}
		w.setUp(map[string]string{settings.File: "checks: [make test, make lint]\n"})
		w.forgetSettings()
		if list, err := w.src.VerificationCommands(w.Context(), repo); err != nil ||
			!slices.Equal(list, []string{"make test", "make lint"}) {
			w.Errorf("checks %q, %v", list, err)
		}
		for _, file := range []string{
			"checks: [make test\n", "checks: {make: test}\n", "checks: [make test, '']\n",
			"checks:\n  - |\n    cd x\n    make\n",
		} {
			w.forgetSettings()
			w.setUp(map[string]string{settings.File: file})
			if list, err := w.src.VerificationCommands(w.Context(), repo); err == nil {
				w.Errorf("of %q: %q", file, list)
			}
		}
		w.forgetSettings()
		w.setUp(map[string]string{settings.File: "", ".github/errand.yaml": "checks: {make: test}\n"})
		if _, err := w.src.VerificationCommands(w.Context(), repo); err == nil ||
			!strings.Contains(err.Error(), " .github/errand.yaml of ") {
			w.Errorf("of a file with the other name: %v", err)
		}
		w.forgetSettings()
		w.setUp(map[string]string{settings.File: "skip: {paths: &none []}\nchecks: *none\nreviews: {}\n"})
		if list, err := w.src.VerificationCommands(w.Context(), repo); err != nil || len(list) > 0 {
			w.Errorf("of a file without any: %q, %v", list, err)
		}
		w.forgetSettings()
		w.hub.Fail(contents, githubfake.Failure{Status: 502})
		if list, err := w.src.VerificationCommands(w.Context(), repo); err == nil {
			w.Errorf("without an answer there are %q", list)
		}
	})
}

// A pull request shows the results of the verification. Their output has no effect there.
func TestPublishShowsVerification(t *testing.T) {
	both(t, func(w *world) {
		const branch, end = "errand/slack-1a2b3c4d5e", "<!-- errand:work end -->"
		must(w.repo.Commit(branch, "main", nil, "begin"))
		n := 0
		publish := func(v tasks.Verification) (body, commit string) {
			w.Helper()
			n++
			p := forge.Proposal{
				Repo: repo, Branch: branch, Base: "main", Title: "Fix the total", Thread: "slack/T1/C1/1.2",
				Source: "slack", Asker: "ann", Run: fmt.Sprintf("179000000%d000000-slack-c1", n),
				Verification: v.Markdown(),
				Summary:      "I added cents to cents, @octocat.\n\n```go\ntotal++\n",
			}
			p.RunURL = "https://errand.example/tasks/" + p.Run
			p.Commit = must(w.repo.Commit(branch, "",
				map[string]string{"main.go": fmt.Sprintf("package main // %d\n", n)}, "Fix the total"))
			if _, err := w.src.forge.Publish(w.Context(), p); err != nil {
				w.Fatal(err)
			}
			return w.pull(1).Body, p.Commit
		}
		body, commit := publish(tasks.Verification{
			Ran: []tasks.Verified{
				{Command: "make `lint`", Outcome: agent.Done, Duration: 3 * time.Second},
				{
					Command: "make test", Outcome: agent.Failed, ExitCode: 2, Duration: 61 * time.Second,
					Said: "```\n@octocat broke it\n<!-- errand:work end -->\nmake: *** [test] Error 1",
				},
				{Command: "make slow", Outcome: agent.Limit, ExitCode: -1, Duration: 14 * time.Minute},
			},
			Unrun: []string{"make more"}, Problem: "there were 15m for all of them",
		})
		golden(w.T, "pull_request_checks", strings.ReplaceAll(body, commit, "COMMIT"))
		if strings.Index(body, end) != len(body)-len(end) || !w.pull(1).Draft {
			w.Errorf("the section does not end at the end: %q", body)
		}
		// The next commit succeeds.
		body, _ = publish(tasks.Verification{Ran: []tasks.Verified{{
			Command: "make test", Outcome: agent.Done, Duration: time.Second,
		}}})
		if !strings.Contains(body, "**All checks succeeded.**") || strings.Contains(body, "broke") {
			w.Errorf("afterwards: %s", body)
		}
	})
}
