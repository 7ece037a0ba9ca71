package githubfake_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/internal/fake/githubfake"
)

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
