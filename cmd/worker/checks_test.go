package main

import (
	"strings"
	"testing"

	"github.com/errand-fleet/errand/internal/fake/modelfake"
)

// Whatever the agent says about the repository's checks, the posted result is theirs. The checks see no credential.
func TestChecksAreTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, err := w.github.Repo(repo).Commit("main", "", map[string]string{
		".github/errand.yml": "checks:\n- grep cents total.go\n- env | grep -i -e token -e secret -e api_key || { echo nothing is seen; exit 3; }\n",
	}, "Set errand up"); err != nil {
		t.Fatal(err)
	}
	w.model.Answer("mend the total",
		modelfake.Turn{Tools: []modelfake.ToolCall{{
			Name:  "Bash",
			Input: map[string]string{"command": "echo '// cents' >> total.go && git commit -qam 'Count in cents'"},
		}}},
		modelfake.Turn{Text: "All checks are green."})
	w.standalone()
	root := w.mention("mend the total", "")
	if final := w.answers(root, 1)[0]; !strings.Contains(final, "All checks are green.") ||
		!strings.Contains(final, "1 of 2 checks failed: env | grep") {
		t.Errorf("final message: %s", final)
	}
	pulls := w.github.Pulls(repo)
	if len(pulls) != 1 || !pulls[0].Draft || !strings.Contains(pulls[0].Body, "\n**1 of 2 checks failed: env") ||
		!strings.Contains(pulls[0].Body, "`grep cents total.go` succeeded after") ||
		!strings.Contains(pulls[0].Body, "```\nnothing is seen\n```") {
		t.Errorf("pull requests: %+v", pulls)
	}
	w.secretsStayInside()
}
