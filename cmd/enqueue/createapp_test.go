package main

import (
	"bytes"
	"context"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/internal/fake/githubfake"
)

// lines is a writer that tests read while it is written.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{}
}

func newLines() *lines { return &lines{more: make(chan struct{}, 100)} }

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer func() { l.more <- struct{}{} }()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// find waits until a pattern occurs and returns its first group.
func (l *lines) find(t *testing.T, pattern string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	for {
		if m := regexp.MustCompile(pattern).FindStringSubmatch(l.String()); m != nil {
			return m[1]
		}
		select {
		case <-l.more:
		case <-ctx.Done():
			t.Fatalf("%s is not in %s", pattern, l)
		}
	}
}

// browse opens a page as a browser does and returns what it shows.
func browse(t *testing.T, client *http.Client, method, address string, form url.Values) (status int, text string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body)
}

// refusesNames checks that a page of this machine refuses a browser that was led there by another name.
func refusesNames(t *testing.T, page string) {
	t.Helper()
	for host, want := range map[string]int{
		"rebound.example": http.StatusMisdirectedRequest, "rebound.example:80": http.StatusMisdirectedRequest,
		"127.0.0.1.rebound.example": http.StatusMisdirectedRequest, "localhost:9000": http.StatusOK,
		"[::1]:9000": http.StatusOK,
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, page, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("Host %s: %d, want %d", host, resp.StatusCode, want)
		}
	}
}

// A person opens one page and confirms the App; its ID, key and secret come into .env by themselves.
func TestCreateApp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		want string // in .env
		said string
	}{
		"webhooks": {
			[]string{"--url", "https://e.example", "--org", "acme"},
			"\nGITHUB_WEBHOOK_SECRET=webhook-secret-of-the-app\n", "2. Start errand",
		},
		"polling": {nil, "\nGITHUB_POLL=20s\n", "2. List these repositories"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hub, err := githubfake.New(githubfake.Config{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(hub.Close)
			dir, said := t.TempDir(), newLines()
			env := map[string]string{"GITHUB_URL": hub.URL(), "GITHUB_API_URL": hub.APIURL()}
			w := world{getenv: func(name string) string { return env[name] }, stdout: io.Discard, stderr: said}
			args := append([]string{"init", "github", "--create", "--dir", dir, "--name", "bob"}, c.args...)
			ended := make(chan int, 1)
			go func() { ended <- run(t.Context(), args, w) }()
			page := said.find(t, `(http://127\.0\.0\.1:\d+/\S+/)`)

			browser := &http.Client{CheckRedirect: func(req *http.Request, _ []*http.Request) error {
				if strings.HasSuffix(req.URL.Path, "/installations/new") {
					return http.ErrUseLastResponse
				}
				return nil
			}}
			local := page[:strings.LastIndex(strings.TrimSuffix(page, "/"), "/")]
			if status, _ := browse(t, browser, http.MethodGet,
				local+"/created?code=stolen&state=guessed", nil); status != http.StatusBadRequest {
				t.Errorf("a code of someone else: %d", status)
			}
			// Other users of the machine do not see the state, with which they could send a code of theirs.
			for _, stranger := range []string{"/", "/GUESSED/"} {
				if status, text := browse(t, browser, http.MethodGet,
					local+stranger, nil); status != http.StatusNotFound {
					t.Errorf("%s: %d %s", stranger, status, text)
				}
			}
			refusesNames(t, page)
			_, text := browse(t, browser, http.MethodGet, page, nil)
			form := regexp.MustCompile(`action="([^"]+)"><input type="hidden" name="manifest" value="([^"]+)"`).FindStringSubmatch(text)
			if form == nil {
				t.Fatal(text)
			}
			if action := html.UnescapeString(form[1]); strings.Contains(action,
				"/organizations/acme/") != (name == "webhooks") {
				t.Errorf("the form goes to %s", action)
			}
			status, text := browse(t, browser, http.MethodPost, html.UnescapeString(form[1]),
				url.Values{"manifest": {html.UnescapeString(form[2])}})
			if status != http.StatusSeeOther {
				t.Fatalf("the browser ends at %d: %s", status, text)
			}
			if code := <-ended; code != 0 {
				t.Fatalf("exit %d: %s", code, said)
			}
			got := read(t, dir, ".env")
			for _, want := range []string{
				c.want, "\nGITHUB_APP_ID=4711\n", "\nGITHUB_APP_PRIVATE_KEY='-----BEGIN RSA PRIVATE KEY-----\\n",
				`\n-----END RSA PRIVATE KEY-----'` + "\n", "\nERRAND_CONSOLE_TOKEN=",
			} {
				if strings.Count(got, want) != 1 {
					t.Errorf("%q is not in .env:\n%s", want, got)
				}
			}
			if info, err := os.Stat(filepath.Join(dir, ".env")); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf(".env: %v, %v", info, err)
			}
			if strings.Contains(said.String(), "webhook-secret") || strings.Contains(said.String(), "BEGIN RSA") {
				t.Errorf("it said %s", said)
			}
			if !strings.Contains(said.String(), c.said) ||
				!strings.Contains(said.String(), hub.URL()+"/apps/bob/installations/new") {
				t.Errorf("it said %s", said)
			}

			// Another App would replace the first one.
			if code := run(t.Context(), args, w); code != 2 ||
				!strings.Contains(said.String(), "has a GitHub App already") {
				t.Errorf("again: exit %d, %s", code, said)
			}
		})
	}
}

// An App whose key could not be kept is not lost: GitHub makes another key.
func TestCreatedAppWithoutItsKey(t *testing.T) {
	t.Parallel()
	hub, err := githubfake.New(githubfake.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(hub.Close)
	w := world{
		getenv: func(name string) string { return map[string]string{"GITHUB_API_URL": hub.APIURL()}[name] },
		stdout: io.Discard, stderr: io.Discard,
	}
	c, err := newTerminal(w).newAppCreation(github.App{Name: "bob"}, hub.URL(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(c.env); err != nil {
		t.Fatal(err)
	}
	c.created <- github.CreatedApp{ID: 1, Key: "the key", URL: "https://hub.example/apps/bob"}
	_, err = c.run(t.Context(), "127.0.0.1:0", "init github create")
	if err == nil || !strings.Contains(err.Error(), "another private key of the App at https://hub.example/apps/bob") {
		t.Errorf("run = %v", err)
	}
}

// An App that exists is kept, also if the person leaves or closes the page at that moment: GitHub gives its key once.
func TestCreatedAppIsKept(t *testing.T) {
	t.Parallel()
	asked, answer := make(chan struct{}), make(chan struct{})
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(asked)
		<-answer
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w,
			`{"id": 4711, "slug": "bob", "pem": "the key", "html_url": "https://hub.example/apps/bob"}`)
	}))
	t.Cleanup(api.Close)
	w := world{
		getenv: func(name string) string { return map[string]string{"GITHUB_API_URL": api.URL}[name] },
		stdout: io.Discard, stderr: io.Discard,
	}
	c, err := newTerminal(w).newAppCreation(github.App{Name: "bob"}, api.URL, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	page, closePage := context.WithCancel(t.Context())
	received := make(chan struct{})
	go func() {
		defer close(received)
		req := httptest.NewRequestWithContext(page, http.MethodGet, "/created?code=once&state="+c.state, nil)
		c.receiveCode(httptest.NewRecorder(), req)
	}()
	<-asked
	closePage()
	close(answer)
	<-received

	over, leave := context.WithCancel(t.Context())
	leave()
	if _, err := c.wait(over); err != nil {
		t.Errorf("the App is not kept: %v", err)
	}
	if text := read(t, c.env); !strings.Contains(text, "\nGITHUB_APP_PRIVATE_KEY='the key'\n") {
		t.Errorf(".env is %s", text)
	}
}
