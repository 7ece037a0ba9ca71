package main

import (
	"bufio"
	"fmt"
	"html"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/errand-fleet/errand/internal/await"
	"github.com/errand-fleet/errand/internal/fake/githubfake"
	"github.com/errand-fleet/errand/internal/fake/modelfake"
)

// newcomer does by hand what the guide and the pages ask for, and counts it.
type newcomer struct {
	*world
	actions int
	guide   *exec.Cmd
	keys    io.Writer // of the guide's terminal
	read    *bufio.Reader
	shown   string
}

// commandsToGuide returns how many commands README.md has from `git clone` to the one that begins the guide.
func commandsToGuide(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	before, _, ok := strings.Cut(string(text), "\nmake guide ")
	if !ok || !strings.Contains(before, "\ngit clone ") {
		t.Fatal("README.md has no git clone or no make guide")
	}
	return 2 + strings.Count(before[strings.LastIndex(before, "```sh")+len("```sh"):], "\n")
}

// guided runs `enqueue init guide` in an empty directory, with this program beside it as the worker.
func (w *world) guided(dir string) *newcomer {
	w.Helper()
	programs := w.TempDir()
	program := filepath.Join(programs, "enqueue")
	self, err := os.Executable()
	if err != nil {
		w.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(programs, "worker")); err != nil {
		w.Fatal(err)
	}
	said, err := exec.CommandContext(w.Context(), "go", "build", "-ldflags=-s", "-o", program, "../enqueue").CombinedOutput()
	if err != nil {
		w.Fatalf("build enqueue: %v: %s", err, said)
	}
	w.env["ERRAND_HTTP_ADDR"] = freeAddress(w) // unlike the default, which another errand may use

	for _, name := range []string{ // which the guide writes
		"GITHUB_TOKEN", "GITHUB_WEBHOOK_SECRET", "SLACK_BOT_TOKEN", "SLACK_SIGNING_SECRET", "ANTHROPIC_API_KEY",
		"ERRAND_CONSOLE_TOKEN", "ERRAND_CONFIG",
	} {
		delete(w.env, name)
	}
	cmd := exec.Command(program, "init", "guide", "-dir", dir)
	for name, value := range w.env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	n := &newcomer{world: w, actions: commandsToGuide(w.T), guide: cmd}
	keys, err := cmd.StdinPipe()
	if err != nil {
		w.Fatal(err)
	}
	out, screen := io.Pipe()
	cmd.Stdout, cmd.Stderr = screen, screen
	n.keys, n.read = keys, bufio.NewReader(out)
	if err := cmd.Start(); err != nil {
		w.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		screen.CloseWithError(cmd.Wait())
	}()
	w.Cleanup(func() {
		_ = out.Close()
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-ended
	})
	return n
}

// stops presses Ctrl-C, after which errand and the guide end.
func (n *newcomer) stops() {
	n.Helper()
	if err := n.guide.Process.Signal(os.Interrupt); err != nil {
		n.Fatal(err)
	}
	if rest, err := io.ReadAll(n.read); err != nil {
		n.Errorf("the guide ended with %v: %s%s", err, n.shown, rest)
	}
}

// sees reads what the guide shows up to a match and returns its last group.
func (n *newcomer) sees(pattern string) string {
	n.Helper()
	for expr := regexp.MustCompile(pattern); ; {
		if m := expr.FindStringSubmatchIndex(n.shown); m != nil {
			found := n.shown[m[len(m)-2]:m[len(m)-1]]
			n.shown = n.shown[m[1]:]
			return found
		}
		r, _, err := n.read.ReadRune()
		if err != nil {
			n.Fatalf("the guide ended with %v, without %s: %s", err, pattern, n.shown)
		}
		n.shown += string(r)
	}
}

// types is one action.
func (n *newcomer) types(line string) {
	n.Helper()
	n.actions++
	if _, err := io.WriteString(n.keys, line+"\n"); err != nil {
		n.Fatal(err)
	}
}

// clicks is one action: it sends a form, or opens a page.
func (n *newcomer) clicks(method, address string, form url.Values) string {
	n.Helper()
	n.actions++
	req, err := http.NewRequestWithContext(n.Context(), method, address, strings.NewReader(form.Encode()))
	if err != nil {
		n.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := (&http.Client{CheckRedirect: func(req *http.Request, _ []*http.Request) error {
		if strings.HasSuffix(req.URL.Path, "/installations/new") {
			return http.ErrUseLastResponse // the page waits for its button
		}
		return nil
	}}).Do(req)
	if err != nil {
		n.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= 400 {
		n.Fatalf("%s: %s %v %s", address, resp.Status, err, body)
	}
	return string(body) + resp.Header.Get("Location")
}

// From nothing to the first answered comment on GitHub, without an address that GitHub reaches, someone does eight
// things by hand.
func TestNewcomer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.model.Answer("what is this", modelfake.Turn{Text: "It is a package of totals."})
	number, err := w.github.OpenPR(t.Context(), githubfake.PR{
		Repo: repo, Base: "main", Head: "fix-total", Title: "Fix the total", User: "acme", Draft: true,
		Files: map[string]string{"total.go": "package total\n\nvar Total = 1\n"},
	})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "fleet")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}

	n := w.guided(dir)
	n.sees("(Key or token)")
	n.types("sk-ant-end-to-end")
	page := n.clicks(http.MethodGet, n.sees(`(http://127\.0\.0\.1:\d+/\S+/)`), nil) // which sends itself on to GitHub
	form := regexp.MustCompile(`action="([^"]+)"><input type="hidden" name="manifest" value="([^"]+)"`).FindStringSubmatch(page)
	if form == nil {
		t.Fatal(page)
	}
	// GitHub has an errand already
	manifest := strings.Replace(html.UnescapeString(form[2]), `"name": "errand"`, `"name": "errand-acme"`, 1)
	install := n.clicks(http.MethodPost, html.UnescapeString(form[1]), url.Values{"manifest": {manifest}})
	n.clicks(http.MethodGet, install[strings.LastIndex(install, "http"):], nil)
	n.sees(`(Install the App errand-acme on the repositories that errand works on: http\S+/installations/new)`)
	n.sees(`(acme/payments: \{\})`)
	n.sees("(Bot token, or configuration token)")
	n.types("")

	mention := n.sees("errand is running. Ask for something now:\n- comment .*: (@errand-acme) ")
	n.actions++
	if _, err := w.github.Comment(t.Context(), repo, number, "acme", mention+" what is this?"); err != nil {
		t.Fatal(err)
	}
	n.sees("(The first task has ended)")
	ctx := await.Context(t)
	err = w.github.Wait(ctx, func(s *githubfake.Server) bool {
		c := s.Comments(repo, number)
		return strings.Contains(c[len(c)-1].Body, "It is a package of totals.")
	})
	if err != nil {
		t.Errorf("%v: %+v", err, w.github.Comments(repo, number))
	}
	if n.actions > 8 {
		t.Errorf("%d actions by hand", n.actions)
	}
	n.stops()
}

// freeAddress returns an address whose port is below those that the kernel gives to programs without one of their own,
// so that it is still free when a program listens there later.
func freeAddress(t testing.TB) string {
	t.Helper()
	for range 100 {
		ln, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(10_000)))
		if err == nil {
			_ = ln.Close()
			return ln.Addr().String()
		}
	}
	t.Fatal("no port is free")
	return ""
}
