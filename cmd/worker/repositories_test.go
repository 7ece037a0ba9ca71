package main

import (
	"os"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/internal/fake/modelfake"
)

// A request in Slack that names two repositories becomes a pull request in each, and each names the other. The thread
// goes on in both.
func TestSeveralRepositories(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const web = "acme/web"
	if _, err := w.github.CreateRepo("acme", "web", map[string]string{
		"total.go": "package web\n", "CLAUDE.md": "Count in euros.\n",
	}); err != nil {
		t.Fatal(err)
	}
	yaml, err := os.ReadFile(w.env["ERRAND_CONFIG"])
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(yaml), "    trusted: true\n", "    trusted: true\n  "+web+": {}\n", 1)
	if err := os.WriteFile(w.env["ERRAND_CONFIG"], []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	bash := func(command string) modelfake.Turn {
		return modelfake.Turn{Tools: []modelfake.ToolCall{{Name: "Bash", Input: map[string]string{"command": command}}}}
	}
	w.model.Answer("mend both",
		bash("echo '// cents' >> total.go && git commit -qam 'Count in cents' && cd ../web && echo '// cents' >> total.go && git commit -qam 'Show cents' && git log -1 --format=%an"), modelfake.Turn{Text: "Both **count cents**."})
	w.model.Answer("and the tax", bash("echo '// tax' >> ../web/total.go"), modelfake.Turn{Text: "The tax too."})
	w.standalone()
	root := w.mention("[repo="+repo+", "+web+"] mend both", "")
	final := w.answers(root, 1)[0]
	for name, with := range map[string]string{repo: web + "#1", web: repo + "#1"} {
		pulls := w.github.Pulls(name)
		if len(pulls) != 1 || !pulls[0].Draft || !strings.Contains(pulls[0].Body, "Together with "+with+".\n\n") ||
			!strings.Contains(pulls[0].Body, "count cents") {
			t.Fatalf("pull requests of %s: %+v", name, pulls)
		}
		if link := "Pull request " + name + "#1: " + w.github.URL() + "/" + name +
			"/pull/1"; !strings.Contains(final, link) {
			t.Errorf("no %s in %s", link, final)
		}
	}
	branch := w.github.Pulls(web)[0].Head
	in := func(want string) {
		t.Helper()
		if got, err := w.github.Repo(web).Git(t.Context(), "log", "--format=%s", "main.."+branch); err != nil ||
			strings.ReplaceAll(strings.TrimSpace(got), "\n", ", ") != want {
			t.Errorf("commits: %s, %v", got, err)
		}
	}
	in("Show cents")
	w.published(branch, "Count in cents", "package total\n// cents\n")
	w.mention("and the tax", root)
	if final := w.answers(root, 2)[1]; !strings.Contains(final, "/"+web+"/pull/1") ||
		!strings.Contains(final, "/"+repo+"/pull/1") {
		t.Errorf("final message: %s", final)
	}
	in("and the tax, Show cents")
	w.published(branch, "Count in cents", "package total\n// cents\n")
	if body := w.github.Pulls(web)[0].Body; len(w.github.Pulls(web)) != 1 ||
		!strings.Contains(body, "Together with "+repo+"#1.") || !strings.Contains(body, "The tax too.") {
		t.Errorf("then %s", body)
	}
	for _, r := range w.model.Requests() { // of both, although the second repository is not trusted
		for _, want := range []string{"Count in euros.", "Count in cents."} {
			if !strings.Contains(r.System, want) {
				t.Errorf("the agent did not get %q", want)
			}
		}
	}
	w.secretsStayInside()
}
