package githubfake_test

import (
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/internal/fake/githubfake"
)

func TestCloneWithoutTheTokenOnDisk(t *testing.T) {
	t.Parallel()
	s, r := start(t, githubfake.Config{})
	g := newGit(t, "ghp_test")
	g.run(t, "clone", r.CloneURL(), "work")

	got := must(os.ReadFile(filepath.Join(g.home, "work", "README.md")))(t)
	if string(got) != "one\ntwo\nthree\n" {
		t.Errorf("README.md = %q", got)
	}
	config := must(os.ReadFile(filepath.Join(g.home, "work", ".git", "config")))(t)
	if strings.Contains(string(config), "ghp_test") {
		t.Error("the token is in .git/config")
	}
	for _, c := range s.Calls("POST /{o}/{r}/git-upload-pack") {
		if c.Header.Get("Authorization") != "" || c.Login != "errand" || c.Status != 200 {
			t.Errorf("recorded call: %+v", c)
		}
	}
}

func TestPartialCloneAndFetchBySHA(t *testing.T) {
	t.Parallel()
	s, r := start(t, githubfake.Config{})
	open(t, s)
	// Thrown away by a force push: no ref leads to it.
	gone := must(r.Commit("topic", "main", map[string]string{"a": "1"}, "one"))(t)
	must(r.Commit("topic", "main", map[string]string{"a": "2"}, "two"))(t)

	g := newGit(t, "ghp_test")
	g.run(t, "clone", "--bare", "--filter=blob:none", r.CloneURL(), "mirror")
	g.dir = filepath.Join(g.home, "mirror")
	// allowFilter: the blobs were left out; a server without it ignores the filter.
	missing := g.run(t, "rev-list", "--objects", "--missing=print", "main")
	if !strings.Contains(missing, "\n?") {
		t.Errorf("nothing is missing after --filter=blob:none:\n%s", missing)
	}
	// allowAnySHA1InWant; protocol 2 never asks.
	g.run(t, "-c", "protocol.version=0", "fetch", "origin", gone)
	g.run(t, "fetch", "origin", "refs/pull/1/head")
	if got, want := g.run(t, "rev-parse", "FETCH_HEAD"), s.Pulls(repo)[0].HeadSHA; got != want {
		t.Errorf("refs/pull/1/head = %s, want %s", got, want)
	}
}

func TestGitCredentials(t *testing.T) {
	t.Parallel()
	s, r := start(t, githubfake.Config{})

	_, err := newGit(t, "").try(t, "ls-remote", r.CloneURL())
	if err == nil {
		t.Error("anonymous read of a private repository")
	}
	_, err = newGit(t, "ghp_wrong").try(t, "ls-remote", r.CloneURL())
	if err == nil {
		t.Error("read with a wrong token")
	}
	_, err = newGit(t, "ghp_test").try(t, "ls-remote", s.URL()+"/acme/none.git")
	if err == nil || !strings.Contains(err.Error(), "not found") {
		t.Errorf("repository that does not exist: %v", err)
	}
	resp := must(http.Get(r.CloneURL() + "/info/refs?service=git-upload-pack"))(t)
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized || resp.Header.Get("WWW-Authenticate") == "" {
		t.Errorf("answered %s without a challenge", resp.Status)
	}

	r.SetPrivate(false)
	g := newGit(t, "")
	g.run(t, "clone", strings.TrimSuffix(r.CloneURL(), ".git"), "work") // GitHub takes both spellings
	g.dir = filepath.Join(g.home, "work")
	if _, err := g.try(t, "push", "origin", "HEAD:refs/heads/x"); err == nil {
		t.Error("anonymous push to a public repository")
	}
}

func TestPushMovesThePullRequest(t *testing.T) {
	t.Parallel()
	s, r := start(t, githubfake.Config{Events: []string{"push", "pull_request"}})
	open(t, s)
	rc := receive(t, s)
	before := s.Pulls(repo)[0].HeadSHA

	g := newGit(t, "ghp_test")
	g.run(t, "clone", "--branch", "change", r.CloneURL(), "work")
	g.dir = filepath.Join(g.home, "work")
	// Larger than http.postBuffer: git sends this one chunked, which CGI cannot read.
	big := make([]byte, 3<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(big) // does not compress
	if err := os.WriteFile(filepath.Join(g.dir, "big.bin"), big, 0o600); err != nil {
		t.Fatal(err)
	}
	g.run(t, "add", ".")
	g.run(t, "commit", "--message", "fix")
	g.run(t, "push", "origin", "HEAD:change", "HEAD:refs/heads/errand/new")
	after := g.run(t, "rev-parse", "HEAD")

	// The state has moved by the time git push returns.
	p := s.Pulls(repo)[0]
	if p.HeadSHA != after || p.Commits != 2 {
		t.Errorf("pull request: head %s with %d commits, want %s with 2", p.HeadSHA, p.Commits, after)
	}
	if got := must(r.SHA("refs/pull/1/head"))(t); got != after {
		t.Errorf("refs/pull/1/head = %s, want %s", got, after)
	}
	if err := s.Wait(t.Context(), (*githubfake.Server).Settled); err != nil {
		t.Fatal(err)
	}
	want := []string{"push", "pull_request synchronize", "push"}
	if diff := cmp.Diff(want, trimActions(rc.seen())); diff != "" {
		t.Errorf("webhooks (-want +got):\n%s", diff)
	}
	e := lastPull(t, rc)
	if e.GetBefore() != before || e.GetAfter() != after || e.GetSender().GetLogin() != "errand" {
		t.Errorf("synchronize %s..%s by %s", e.GetBefore(), e.GetAfter(), e.GetSender().GetLogin())
	}

	// Pull request refs are not ours to write.
	if out, err := g.try(t, "push", "origin", "HEAD:refs/pull/1/head"); err == nil {
		t.Errorf("pushed to refs/pull: %s", out)
	}
	g.run(t, "push", "origin", ":change")
	if p := s.Pulls(repo)[0]; p.State != "closed" {
		t.Error("deleting the branch did not close the pull request")
	}
}

// trimActions takes the action of push events off: they have none, but
// go-github's type has the field.
func trimActions(log []string) []string {
	for i := range log {
		log[i] = strings.TrimSpace(log[i])
	}
	return log
}

func TestCommit(t *testing.T) {
	t.Parallel()
	_, r := start(t, githubfake.Config{})
	odd := "dir/ü \"quoted\"\\\n.txt"
	first := must(r.Commit("topic", "main", map[string]string{
		odd: "x", "README.md": githubfake.Deleted, "empty": "",
	}, "one"))(t)
	out := must(r.Git(t.Context(), "ls-tree", "-r", "-z", "--name-only", "topic"))(t)
	want := []string{"cmd/main.go", odd, "empty", "old.txt", ""}
	if diff := cmp.Diff(want, strings.Split(out, "\x00")); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
	second := must(r.Commit("topic", "", map[string]string{"b": "b"}, "two"))(t)
	if parent := must(r.SHA("topic~1"))(t); parent != first {
		t.Errorf("the second commit's parent is %s, want %s", parent, first)
	}
	// Starting over is a force push.
	third := must(r.Commit("topic", "main", map[string]string{"c": "c"}, "three"))(t)
	if third == second || must(r.SHA("topic~1"))(t) != must(r.SHA("main"))(t) {
		t.Error("the branch was not thrown back to main")
	}
	if _, err := r.Commit("topic", "nowhere", nil, "four"); err == nil {
		t.Error("a commit from a branch that does not exist")
	}
	who := must(r.Git(t.Context(), "log", "-1", "--format=%ae %ce", "topic"))(t)
	if strings.TrimSpace(who) != "octocat@example.com octocat@example.com" {
		t.Errorf("author and committer: %s", who)
	}
}
