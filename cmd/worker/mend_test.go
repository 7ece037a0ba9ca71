package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/internal/fake/modelfake"
)

// A check that fails on errand's own pull request is fixed automatically, on the same branch and in the thread that it
// came from, once.
func TestFailedCheckIsMended(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bash := func(command string) modelfake.Turn {
		return modelfake.Turn{Tools: []modelfake.ToolCall{{Name: "Bash", Input: map[string]string{"command": command}}}}
	}
	w.model.Answer("mend the total", bash("echo '// cents' >> total.go && git commit -qam 'Count in cents'"),
		modelfake.Turn{Text: "Done."})
	w.model.Answer("Checks have failed", bash("echo '// tested' >> total.go"),
		modelfake.Turn{Text: "The **check** had found that nothing was tested."})
	w.standalone()
	root := w.mention("mend the total", "")
	w.answers(root, 1)
	pr := w.github.Pulls(repo)[0]

	w.failed(pr.HeadSHA)
	w.onGitHub(func() bool { return len(w.github.Comments(repo, 1)) > 0 })
	if c := w.github.Comments(repo, 1)[0]; !strings.Contains(c.Body, "nothing was tested") {
		t.Errorf("comment: %s", c.Body)
	}
	w.published(pr.Head, "Failed checks of pull request #1 of acme/payments: Count in cents, Count in cents",
		"package total\n// cents\n// tested\n")
	trailers, err := w.github.Repo(repo).Git(t.Context(), "log", "-1",
		"--format=%(trailers:key=Errand-Run,valueonly)", pr.Head)
	if err != nil || !strings.Contains(trailers, "-github-check-failure-1-") {
		t.Errorf("trailers: %q, %v", trailers, err)
	}
	if pulls := w.github.Pulls(repo); len(pulls) != 1 || pulls[0].HeadSHA == pr.HeadSHA {
		t.Errorf("pull requests: %+v", pulls)
	}
	var told bool
	for _, r := range w.model.Requests() {
		told = told || strings.Contains(string(r.Body), "total_test.go is missing")
	}
	if !told {
		t.Error("the agent did not get the check's output")
	}

	// The same check again for a head that is gone, a result that is no failure for the new head, and errand's own
	// push: none of them starts a task.
	pushes := len(w.github.Calls("POST /{o}/{r}/git-receive-pack"))
	w.failed(pr.HeadSHA)
	w.mention("mend the total", root)
	w.answers(root, 2)
	if n := len(w.github.Comments(repo, 1)); n != 1 {
		t.Errorf("%d comments", n)
	}
	if n := len(w.github.Statuses(repo, w.github.Pulls(repo)[0].HeadSHA)); n != 0 {
		t.Errorf("our own push was reviewed")
	}
	if n := len(w.github.Calls("POST /{o}/{r}/git-receive-pack")); n > pushes+1 {
		t.Errorf("%d more pushes, want only that of the second mention", n-pushes)
	}
	w.secretsStayInside()
}

// failed reports a failed check of another app on a commit.
func (w *world) failed(sha string) {
	w.Helper()
	const body = `{"state": "failure", "context": "ci/unit", "description": "total_test.go is missing", "target_url": "https://ci.example/1"}`
	req, err := http.NewRequestWithContext(w.Context(), http.MethodPost, w.github.APIURL()+"repos/"+repo+"/statuses/"+
		sha, strings.NewReader(body))
	if err != nil {
		w.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer ghp_test")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		w.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusCreated {
		w.Fatalf("set status: %s", resp.Status)
	}
}
