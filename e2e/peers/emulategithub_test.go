package peers

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/errand-fleet/errand/internal/fake/githubfake"
	"github.com/errand-fleet/errand/internal/fake/modelfake"
)

// hub is a GitHub that others wrote, with our App. It has no git remote, no statuses, no reactions and invents the
// files of a pull request (at 0.12.2): git is served by our own fake, with the same commits.
type hub struct {
	*testing.T
	url   string
	front atomic.Pointer[httputil.ReverseProxy] // to the front door, once it is up
}

// emulateGitHub returns it with the key of the App, and where its git is.
func emulateGitHub(t *testing.T) (h *hub, key, git string) {
	t.Helper()
	fake, err := githubfake.New(githubfake.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fake.Close)
	repo, err := fake.CreateRepo("acme", "api", map[string]string{"main.go": "package main\n"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fake.OpenPR(t.Context(), githubfake.PR{
		Repo: "acme/api", Head: "change", Title: "Greet", Files: map[string]string{"hello.go": "package main\n"},
	}); err != nil {
		t.Fatal(err)
	}
	h = &hub{T: t}
	hooks := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.front.Load().ServeHTTP(w, r)
	}))
	t.Cleanup(hooks.Close)
	var up struct{ URL, Key string }
	node(t, []string{"REPOSITORY=" + repo.Dir(), "MANIFEST=" + appManifest(t, hooks.URL)}, modern(t),
		"emulategithub.mjs", &up)
	h.url = up.URL
	return h, up.Key, h.gitOf(fake)
}

// appManifest is what `enqueue init github` prints, with a webhook that goes to us.
func appManifest(t *testing.T, hooks string) string {
	t.Helper()
	cmd := exec.CommandContext(limited(t), filepath.Join("..", "..", "bin", "enqueue"), "init", "github", "-url",
		"https://errand.example")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("init: %v", err)
	}
	return strings.ReplaceAll(string(out), "https://errand.example/github/", hooks+"/github/")
}

// gitOf is a git remote that is opened by the tokens that the emulator gives to the installation.
func (h *hub) gitOf(fake *githubfake.Server) string {
	target, err := url.Parse(fake.URL())
	if err != nil {
		h.Fatal(err)
	}
	server := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		user, token, ok := r.In.BasicAuth()
		switch {
		case !ok: // git asks without first
		case user == "x-access-token" && strings.HasPrefix(token, "ghs_"):
			r.Out.SetBasicAuth(user, "ghp_test")
		default:
			h.Errorf("git came as %s", user)
		}
	}})
	h.Cleanup(server.Close)
	return server.URL
}

// ask is Ann's request to the emulator.
func (h *hub) ask(method, path string, body, answer any) {
	h.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		h.Fatal(err)
	}
	req, err := http.NewRequestWithContext(limited(h.T), method, h.url+path, bytes.NewReader(text))
	if err != nil {
		h.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer ghp_ann")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		h.Fatal(err)
	}
	defer resp.Body.Close()
	said, _ := io.ReadAll(resp.Body)
	if err := json.Unmarshal(said, answer); err != nil || resp.StatusCode/100 != 2 {
		h.Fatalf("%s %s: %s %s", method, path, resp.Status, said)
	}
}

type comment struct {
	Body string
	User struct{ Login string }
}

type checkRun struct {
	Name, Status, Conclusion string
	HeadSHA                  string `json:"head_sha"`
}

// A pull request on an emulated GitHub gets its check run and its comment, and a comment its answer, from a whole
// errand with the real CLI that was installed as `enqueue init github` says. The doctor accepts App, permissions and
// installation; the emulator does not report the App's webhook.
func TestErrandOnAnEmulatedGitHub(t *testing.T) {
	t.Parallel()
	h, key, git := emulateGitHub(t)
	model := modelfake.New()
	t.Cleanup(model.Close)
	model.Answer("Review pull request", modelfake.Turn{Tools: []modelfake.ToolCall{{
		Name: "StructuredOutput", Input: map[string]any{"summary": "It greets **nobody**, @ann.", "findings": []any{}},
	}}})
	model.Answer("what is it for", modelfake.Turn{Text: "It is *for* greeting."})
	keyFile := filepath.Join(t.TempDir(), "app.pem")
	if err := os.WriteFile(keyFile, []byte(key), 0o600); err != nil {
		t.Fatal(err)
	}
	shown := run(t, []string{
		"ERRAND_SANDBOX=none", "ERRAND_ALLOW_ROOT=true",
		"ERRAND_STATE_DIR=" + t.TempDir(), "ERRAND_HTTP_ADDR=127.0.0.1:0", "ERRAND_WORKER_ADDR=127.0.0.1:0",
		"ERRAND_CONSOLE_TOKEN=" + console, "ANTHROPIC_BASE_URL=" + model.URL(), "ANTHROPIC_API_KEY=sk-ant-peer-key",
		"GITHUB_API_URL=" + h.withReplies() + "/", "GITHUB_URL=" + git, "GITHUB_APP_ID=77",
		"GITHUB_APP_PRIVATE_KEY=" + keyFile, "GITHUB_WEBHOOK_SECRET=github-secret",
	}, "console", filepath.Join("..", "..", "bin", "worker"), "-standalone")
	base, _, _ := strings.Cut(shown, "/login?")
	front, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	h.front.Store(httputil.NewSingleHostReverseProxy(front))

	var pr struct {
		Number int
		Head   struct{ SHA string }
	}
	h.ask(http.MethodPost, "/repos/acme/api/pulls", map[string]string{
		"title": "Greet", "head": "change", "base": "main",
	}, &pr)
	run, said := h.reviewed(pr.Head.SHA)
	h.examined(base)
	if run.Name != "errand" || run.HeadSHA != pr.Head.SHA || run.Conclusion != "success" {
		t.Errorf("check run %+v", run)
	}
	if said.User.Login != "errand[bot]" || !strings.Contains(said.Body, "**nobody**") ||
		strings.Contains(said.Body, " @ann") {
		t.Errorf("comment %+v", said)
	}
	h.ask(http.MethodPost, "/repos/acme/api/pulls/1/comments", map[string]any{
		"body": "@errand what is it for?", "path": "hello.go", "line": 1, "side": "RIGHT", "commit_id": pr.Head.SHA,
	}, &comment{})
	h.answered("It is *for* greeting.")
}

// examined asks the doctor.
func (h *hub) examined(base string) {
	h.Helper()
	req, err := http.NewRequestWithContext(limited(h.T), http.MethodGet, base+"/api/health/services", nil)
	if err != nil {
		h.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+console)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		h.Fatal(err)
	}
	defer resp.Body.Close()
	var said struct {
		Findings []struct{ Severity, What string }
	}
	if err := json.NewDecoder(resp.Body).Decode(&said); err != nil {
		h.Fatal(err)
	}
	const (
		model = "the credential for the model: "
		fleet = "Redis has the data of the fleet: GitHub App 77 of "
	)
	well := map[string]bool{
		"GitHub knows errand as the App errand (77)": false, "GitHub: installed at acme": false, model: false, fleet: false,
		"the inbox has no event that has failed": false,
	}
	for _, f := range said.Findings {
		for _, begin := range []string{model, fleet} { // and the address that answers
			if strings.HasPrefix(f.What, begin) {
				f.What = begin
			}
		}
		if _, looked := well[f.What]; looked {
			well[f.What] = f.Severity == ""
		} else if !strings.HasPrefix(f.What, "GitHub did not say ") {
			h.Errorf("the doctor finds %+v", f)
		}
	}
	for what, ok := range well {
		if !ok {
			h.Errorf("%q is not in %+v", what, said.Findings)
		}
	}
}

// reviewed waits until the check run has ended and the comment is posted, and returns both: there is one of each.
func (h *hub) reviewed(sha string) (checkRun, comment) {
	h.Helper()
	var checks struct {
		Runs []checkRun `json:"check_runs"`
	}
	var comments []comment
	h.until("reviewed", func() bool {
		h.ask(http.MethodGet, "/repos/acme/api/commits/"+sha+"/check-runs", nil, &checks)
		h.ask(http.MethodGet, "/repos/acme/api/issues/1/comments", nil, &comments)
		if len(checks.Runs) > 1 || len(comments) > 1 {
			h.Fatalf("checks %+v, comments %+v", checks.Runs, comments)
		}
		return len(checks.Runs) == 1 && checks.Runs[0].Status == "completed" && len(comments) == 1 &&
			strings.Contains(comments[0].Body, "It greets")
	})
	return checks.Runs[0], comments[0]
}

// withReplies returns the address of the emulator behind a proxy that passes replies to a comment on a line to where
// comments are made: the emulator does not have GitHub's operation for replies.
func (h *hub) withReplies() string {
	h.Helper()
	target, err := url.Parse(h.url)
	if err != nil {
		h.Fatal(err)
	}
	server := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		if made := replies.ReplaceAllString(r.Out.URL.Path, "/comments"); r.Out.Method == http.MethodPost {
			r.Out.URL.Path = made
		}
		r.SetURL(target)
	}})
	h.Cleanup(server.Close)
	return server.URL
}

var replies = regexp.MustCompile(`/comments/\d+/replies$`)

// answered waits for errand's comment on a line. (The emulator does not distinguish comments on pull requests and
// issues.)
func (h *hub) answered(words string) {
	h.Helper()
	h.until("answered", func() bool {
		var comments []comment
		h.ask(http.MethodGet, "/repos/acme/api/pulls/1/comments", nil, &comments)
		return slices.ContainsFunc(comments, func(c comment) bool {
			return c.User.Login == "errand[bot]" && strings.Contains(c.Body, words)
		})
	})
}

// until looks again and again.
func (h *hub) until(what string, done func() bool) {
	h.Helper()
	ctx := limited(h.T)
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for !done() {
		select {
		case <-look.C:
		case <-ctx.Done():
			h.Fatalf("not %s", what)
		}
	}
}
