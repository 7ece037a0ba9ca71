package githubfake_test

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-github/v60/github"

	"github.com/errand-fleet/errand/internal/fake/githubfake"
)

const repo = "acme/api"

// start runs a fake with the repository acme/api.
func start(t *testing.T, cfg githubfake.Config) (*githubfake.Server, *githubfake.Repo) {
	t.Helper()
	s, err := githubfake.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	r, err := s.CreateRepo("acme", "api", map[string]string{
		"README.md": "one\ntwo\nthree\n", "cmd/main.go": "package main\n", "old.txt": strings.Repeat("a line\n", 20),
	})
	if err != nil {
		t.Fatal(err)
	}
	return s, r
}

// newClient speaks with the given credentials; "" for none.
func newClient(t *testing.T, s *githubfake.Server, token string) *github.Client {
	t.Helper()
	c := github.NewClient(nil)
	if token != "" {
		c = c.WithAuthToken(token)
	}
	return aim(t, s, c)
}

func aim(t *testing.T, s *githubfake.Server, c *github.Client) *github.Client {
	t.Helper()
	base, err := url.Parse(s.APIURL())
	if err != nil {
		t.Fatal(err)
	}
	c.BaseURL, c.UploadURL = base, base
	return c
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// open opens a pull request that changes README.md.
func open(t *testing.T, s *githubfake.Server) int {
	t.Helper()
	return must(s.OpenPR(t.Context(), githubfake.PR{
		Repo: repo, Head: "change", Title: "Change", Body: "Please.",
		Files: map[string]string{"README.md": "one\nTWO\nthree\n"},
	}))(t)
}

// wantError checks the status and message of an API error.
func wantError(t *testing.T, err error, status int, message string) {
	t.Helper()
	e, ok := errors.AsType[*github.ErrorResponse](err)
	if !ok {
		t.Fatalf("got error %v, want status %d", err, status)
	}
	said := e.Message
	for _, one := range e.Errors {
		said += " | " + one.Message + " " + one.Field + " " + one.Code
	}
	if e.Response.StatusCode != status || !strings.Contains(said, message) {
		t.Errorf("got %d %q, want %d %q", e.Response.StatusCode, said, status, message)
	}
	if e.DocumentationURL == "" {
		t.Error("the error has no documentation_url")
	}
}

// gitClient runs git as our workers do: the token comes from a credential
// helper configured through the environment, never through arguments.
type gitClient struct {
	home, dir string
	env       []string
}

func newGit(t *testing.T, token string) *gitClient {
	t.Helper()
	home := t.TempDir()
	g := &gitClient{home: home, dir: home, env: []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "LC_ALL=C",
		"GIT_AUTHOR_NAME=w", "GIT_AUTHOR_EMAIL=w@example.com", "GIT_COMMITTER_NAME=w",
		"GIT_COMMITTER_EMAIL=w@example.com",
	}}
	if token != "" {
		g.env = append(
			g.env, "TEST_TOKEN="+token, "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=credential.helper",
			`GIT_CONFIG_VALUE_0=!f() { echo username=x-access-token; echo "password=$TEST_TOKEN"; }; f`,
		)
	}
	return g
}

func (g *gitClient) try(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir, cmd.Env = g.dir, g.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("git %s: %w: %s", args[0], err, out)
	}
	return string(out), err
}

func (g *gitClient) run(t *testing.T, args ...string) string {
	t.Helper()
	return strings.TrimSpace(must(g.try(t, args...))(t))
}
