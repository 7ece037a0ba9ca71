package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/internal/fake/githubfake"
	"github.com/errand-fleet/errand/internal/fake/modelfake"
	"github.com/errand-fleet/errand/internal/fake/slackfake"
)

// The agent works on a pull request that is named in Slack. First it only reads it. A later change, in the same thread
// and without a mention, continues from its head.
func TestPullRequestFromSlack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tool := func(name string, input map[string]string) modelfake.Turn {
		return modelfake.Turn{Tools: []modelfake.ToolCall{{Name: name, Input: input}}}
	}
	w.model.Answer("review PR 1", tool("Bash", map[string]string{"command": "echo evil >> total.go"}),
		modelfake.Turn{Text: "The total is off by one."})
	w.model.Answer("mend that",
		tool("Bash", map[string]string{"command": "cat total.go && echo '// mended' >> total.go"}),
		modelfake.Turn{Text: "Mended."})
	w.standalone()
	if _, err := w.github.OpenPR(t.Context(), githubfake.PR{
		// which is not reviewed automatically
		Repo: repo, Base: "main", Head: "fix-total", Title: "Fix the total", User: "ann", Draft: true,
		Files: map[string]string{"total.go": "package total\n\nvar Total = 1\n"},
	}); err != nil {
		t.Fatal(err)
	}
	root := w.mention("review PR 1", "")
	if final := w.answers(root, 1)[0]; !strings.Contains(final, "off by one") {
		t.Errorf("final message: %s", final)
	}
	for _, want := range []string{"changes.diff", "pull request #1 of " + repo} {
		if !bytes.Contains(w.model.Requests()[0].Body, []byte(want)) {
			t.Errorf("the agent did not get %q", want)
		}
	}
	if n := len(w.github.Pulls(repo)); n != 1 {
		t.Errorf("%d pull requests", n)
	}
	if _, err := w.slack.Post(t.Context(), slackfake.Message{
		Channel: channel, User: "U0ANN", Text: "mend that", ThreadTS: root,
	}); err != nil {
		t.Fatal(err)
	}
	w.answers(root, 2)
	pulls := w.github.Pulls(repo)
	if len(pulls) != 2 {
		t.Fatalf("pull requests: %+v", pulls)
	}
	w.published(pulls[1].Head, "mend that, Fix the total", "package total\n\nvar Total = 1\n// mended\n")
}
