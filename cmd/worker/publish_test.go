package main

import (
	"bytes"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/internal/fake/modelfake"
)

// An agent's changes become a draft pull request, linked in the thread. Its next changes in the thread go to the same
// one, also on a machine that has no local copy.
func TestWorkIsPublished(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.model.Answer("mend the total",
		bash("echo '// cents' >> total.go && git commit -qam 'Count in cents' && echo 'package total' > more.go && env && cat .git/config && git remote -v"),
		modelfake.Turn{Text: "The total **counts cents** now."})
	w.model.Answer("and the tax", bash("echo '// tax' >> total.go && git status --short"),
		modelfake.Turn{Text: "The tax too."})
	w.model.Answer("which one", modelfake.Turn{Text: "That one."})
	w.configure("people:\n  Ann Lee: {slack: " + person + ", github: ann-acme}\n")
	w.github.SetPermission(repo, "ann-acme", "write")
	front := w.frontDoor()
	first := w.process()
	root := w.mention("mend the total", "")
	link := w.github.URL() + "/" + repo + "/pull/1"
	if final := w.answers(root, 1)[0]; !strings.Contains(final, "counts cents") ||
		!strings.Contains(final, "Pull request "+repo+"#1: "+link) {
		t.Errorf("final message: %s", final)
	}
	pulls := w.github.Pulls(repo)
	if len(pulls) != 1 || !pulls[0].Draft || pulls[0].Title != "Count in cents" ||
		!strings.Contains(pulls[0].Body, "counts cents") || pulls[0].Files != 2 {
		t.Fatalf("pull requests: %+v", pulls)
	}
	if !strings.Contains(pulls[0].Body, "Asked for by Ann Lee, ann-acme on GitHub (slack)") {
		t.Errorf("the pull request does not say who asked: %s", pulls[0].Body)
	}
	for _, path := range []string{"/api/tasks?person=ann+lee", "/api/costs?by=person&person=Ann+Lee"} {
		if text := w.get(front + path); !strings.Contains(text, `"person": "Ann Lee"`) {
			t.Errorf("%s: %s", path, text)
		}
	}
	branch := pulls[0].Head
	w.published(branch, "Mend the total, Count in cents", "package total\n// cents\n")
	w.secretsStayInside()

	// The next worker starts with an empty disk.
	if err := first.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait()
	old := w.env["ERRAND_STATE_DIR"]
	w.env["ERRAND_STATE_DIR"] = filepath.Join(t.TempDir(), "another")
	w.process()
	w.mention("and the tax", root)
	if final := w.answers(root, 2)[1]; !strings.Contains(final, link) {
		t.Errorf("final message: %s", final)
	}
	w.published(branch, "And the tax, Mend the total, Count in cents", "package total\n// cents\n// tax\n")
	if pulls := w.github.Pulls(repo); len(pulls) != 1 || !strings.Contains(pulls[0].Body, "The tax too.") ||
		pulls[0].HeadSHA == "" {
		t.Errorf("pull requests: %+v", pulls)
	}
	// A question about it changes nothing.
	before := len(w.github.Calls("POST /{o}/{r}/git-receive-pack"))
	w.mention("which one", root)
	if final := w.answers(root, 3)[2]; !strings.Contains(final, link) {
		t.Errorf("final message: %s", final)
	}
	if n := len(w.github.Calls("POST /{o}/{r}/git-receive-pack")); n != before ||
		len(w.github.Calls("POST /repos/{o}/{r}/pulls")) != 1 {
		t.Errorf("%d pushes, before %d; %d pull requests opened", n, before,
			len(w.github.Calls("POST /repos/{o}/{r}/pulls")))
	}
	w.secretsStayInside()
	w.env["ERRAND_STATE_DIR"] = old
	w.secretsStayInside()
	basic := base64.StdEncoding.EncodeToString([]byte("x-access-token:" + githubToken))
	for _, r := range w.model.Requests() {
		if bytes.Contains(r.Body, []byte(basic)) || bytes.Contains(r.Body, []byte("ERRAND_GIT")) {
			t.Error("the agent saw the credential of git")
		}
	}
}

// published compares the branch with the subjects of its commits, newest first, and with the content of total.go.
func (w *world) published(branch, log, total string) {
	w.Helper()
	r := w.github.Repo(repo)
	got, err := r.Git(w.Context(), "log", "--format=%s", "main.."+branch)
	if err != nil || strings.ReplaceAll(strings.TrimSpace(got), "\n", ", ") != log {
		w.Errorf("commits: %s, %v", got, err)
	}
	if got, err := r.Git(w.Context(), "show", branch+":total.go"); err != nil || got != total {
		w.Errorf("total.go: %s, %v", got, err)
	}
}
