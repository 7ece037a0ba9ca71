package worker

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/environment"
	"github.com/errand-fleet/errand/forge"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/rights"
	"github.com/errand-fleet/errand/tasks/worker/publish"
	"github.com/errand-fleet/errand/workspace"
)

// signsWith makes the workers' disks sign, and returns a function that fails the test unless git verifies all commits
// of a branch that main lacks, of acme/api or as "repository:branch". It returns their subjects.
func (r *remote) signsWith() (disk func(*Config), verified func(branch string) string) {
	r.Helper()
	file := filepath.Join(r.TempDir(), "key")
	if out,
		err := exec.CommandContext(r.Context(), "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", file).CombinedOutput(); err != nil {
		r.Fatalf("ssh-keygen: %v\n%s", err, out)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		r.Fatal(err)
	}
	signer, err := workspace.NewSigner(text)
	if err != nil {
		r.Fatal(err)
	}
	allowed, bare := filepath.Join(r.TempDir(), "allowed"), r.bare()
	r.write(filepath.Dir(allowed), "allowed", "* "+signer.PublicKey()+"\n")
	disk = func(c *Config) {
		var err error
		c.Workspace, err = workspace.New(workspace.Config{
			Dir: r.TempDir(), Signer: signer, URL: func(repo string) string {
				return filepath.Join(r.root, repo+".git")
			},
		})
		if err != nil {
			r.Fatal(err)
		}
	}
	return disk, func(branch string) string {
		r.Helper()
		bare := bare
		if repo, of, other := strings.Cut(branch, ":"); other {
			bare, branch = filepath.Join(r.root, repo+".git"), of
		}
		for commit := range strings.FieldsSeq(r.git(bare, "rev-list", "main.."+branch)) {
			r.git(bare, "-c", "gpg.format=ssh", "-c", "gpg.ssh.allowedSignersFile="+allowed, "verify-commit", commit)
		}
		return strings.ReplaceAll(r.git(bare, "log", "--format=%s", "main.."+branch), "\n", ", ")
	}
}

// The commits of a run that went on at another worker are all signed, with the asker as co-author, as are those of the
// thread's next task on a third disk.
func TestResumedWorkIsSigned(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	h := &hub{name: "fake"}
	with := func(c *Config) { c.Publisher, c.Commands = h, h.commands }
	disk, verified := r.signsWith()
	first := r.worker(disk, with)
	task := r.repoTask("a")
	task.Actor = "ann"
	id := r.submit(task)
	<-r.started
	first()
	r.worker(disk, with)
	if e := r.ending(id); e.Kind != tasks.Answered || e.Published == nil {
		t.Fatalf("ending = %+v", e)
	}
	branch := publish.Branch("", "fake/a")
	if got := verified(branch); got != "Do it, work" {
		t.Errorf("pushed %s", got)
	}
	bare := r.bare()
	const want = "bot <3+bot@users.noreply.github.com> ann <3+ann@users.noreply.github.com>"
	if got := r.git(bare, "log", "--format=%cn <%ce> %(trailers:key=Co-authored-by,valueonly,separator=%x2C)",
		"main.."+branch); got != want+"\n"+want {
		t.Errorf("people:\n%s", got)
	}
	if about := r.agent.specs()[0].System; !strings.Contains(about,
		"Errand-Run: "+id+" and the line Co-authored-by: ann <") || r.agent.specs()[0].Author == "" {
		t.Errorf("the agent got %s", about)
	}

	r.stopAll()
	before := r.git(bare, "rev-parse", branch)
	r.agent.do = func(_ context.Context, s agent.Spec, _ agent.Host) (agent.Result, error) {
		r.write(s.Dir, "README.md", "again\n")
		r.git(s.Dir, "commit", "--quiet", "--all", "--message", "more")
		return answer("More."), nil
	}
	r.worker(disk, with)
	r.ending(r.submit(r.repoTask("a")))
	if got := verified(branch); got != "more, Do it, work" || r.git(bare, "rev-parse", branch+"~1") != before {
		t.Errorf("pushed %s", got)
	}
}

// The settings of the base branch, under the operator's, name the branch and shape the pull request. A thread keeps its
// branch when they change.
func TestPullRequestSettings(t *testing.T) {
	t.Parallel()
	r, h, with := publishingFleet(t, (*remote).everything)
	h.draft = true
	r.declare("main",
		"pull_requests: {branch_prefix: bot/, title: 'x ', labels: [a, b], draft: false, template: true}\n")
	r.push("refs/heads/main", map[string]string{environment.TemplateFile: "## From the base\n"})
	r.push("refs/heads/head", map[string]string{
		environment.TemplateFile: "## From the head\n",
		environment.File:         "pull_requests: {branch_prefix: evil/, labels: [evil]}\n",
	})
	prefix := environment.PullRequests{Title: "[op] "}
	r.policy.Repository = func(string) (rights.Repository, bool) {
		return rights.Repository{Environment: environment.Declaration{PullRequests: prefix}}, true
	}
	r.worker(r.disk(t.TempDir()), with)
	task := r.repoTask("a")
	task.Ref = "head"
	e := r.ending(r.submit(task))
	want := forge.Style{Title: "[op] ", Labels: []string{"a", "b"}, Ready: true, Template: "## From the base\n"}
	if branch := publish.Branch("bot/", "fake/a"); e.Published == nil || e.Published.Branch != branch ||
		!e.Published.PullRequest.Draft {
		t.Fatalf("ending = %+v", e)
	}
	if diff := cmp.Diff(want, h.proposed()[0].Style); diff != "" {
		t.Errorf("style (-want +got):\n%s", diff)
	}
	if about := r.agent.specs()[0].System; !strings.Contains(about, "are published as branch bot/fake-") {
		t.Errorf("the agent got %s", about)
	}

	r.stopAll()
	prefix.BranchPrefix = "new/"
	r.worker(r.disk(t.TempDir()), with)
	r.agent.do = func(_ context.Context, s agent.Spec, _ agent.Host) (agent.Result, error) {
		r.write(s.Dir, "README.md", "again\n")
		return answer("Again."), nil
	}
	if again := r.ending(r.submit(r.repoTask("a"))); again.Published == nil ||
		again.Published.Branch != e.Published.Branch {
		t.Errorf("ending = %+v", again)
	}
	if got := r.git(r.bare(), "branch", "--list", "--format=%(refname:short)"); strings.Contains(got, "new/") ||
		strings.Contains(got, "errand/") {
		t.Errorf("branches:\n%s", got)
	}
}
