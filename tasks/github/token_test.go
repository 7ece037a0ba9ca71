package github

import (
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/internal/fake/githubfake"
	"github.com/errand-fleet/errand/tasks/github/subject"
)

// A report that was opened with one token ends with another: an installation's lives an hour, a run two.
func TestReportOutlivesItsToken(t *testing.T) {
	t.Parallel()
	w := newApp(t, githubfake.Config{TokenLife: 30 * time.Second}) // due for a new one at once
	task := w.task(w.open(), 0)
	r := w.report(task)
	_, before, err := w.src.forge.Credential(t.Context(), repo)
	if err != nil {
		t.Fatal(err)
	}
	w.hub.ExpireTokens()
	if err := r.Close(t.Context(), answered("All is well.")); err != nil {
		t.Error(err)
	}
	if _, after, err := w.src.forge.Credential(t.Context(), repo); err != nil || after == before {
		t.Errorf("git gets a token that has ended, or none: %v", err)
	}
}

// An event names its installation: it should not be looked up, and only that one should be asked for a token.
func TestClientsByInstallation(t *testing.T) {
	t.Parallel()
	w := withApp(t)
	task := w.task(w.open(), 0)
	if err := brief(w, task); err != nil {
		t.Fatal(err)
	}
	task.Origin = []byte(strings.Replace(string(task.Origin), `"installation":5,`, `"installation":6,`, 1))
	wantInput(t, brief(w, task), "did not let errand")
	var asked []string
	for _, c := range w.hub.Calls(tokens) {
		asked = append(asked, c.Path)
	}
	if len(asked) != 2 || !strings.Contains(asked[0], "/installations/5/") ||
		!strings.Contains(asked[1], "/installations/6/") || len(w.hub.Calls(installation)) > 0 {
		t.Errorf("asked %v, looked for an installation %d times", asked, len(w.hub.Calls(installation)))
	}
}

// A webhook of the repository brings no installation.
func TestInstallationIsFound(t *testing.T) {
	t.Parallel()
	w := withApp(t)
	task := w.task(w.open(), 0)
	task.Origin = []byte(strings.Replace(string(task.Origin), `"installation":5,`, "", 1))
	if o := must(subject.Of(task)); o.Installation != 0 {
		t.Fatal(o)
	}
	if err := brief(w, task); err != nil {
		t.Error(err)
	}
}

const (
	tokens       = "POST /app/installations/{id}/access_tokens"
	installation = "GET /repos/{o}/{r}/installation"
)
