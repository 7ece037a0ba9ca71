package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/joho/godotenv"
)

// standIn prints its credentials and the signals that it gets, and ends with the second Ctrl-C.
func standIn() {
	signals, _ := notifySignals()
	for name, rival := range rivals {
		if os.Getenv(name) != "" && os.Getenv(rival) != "" {
			fmt.Println(name, "contradicts", rival)
		}
	}
	fmt.Println("started with", os.Getenv("GITHUB_TOKEN")+os.Getenv("ANTHROPIC_API_KEY"), os.Getenv("KEPT"))
	for interrupts := 0; interrupts < 2; {
		s := <-signals
		if fmt.Println(s); s == os.Interrupt {
			interrupts++
		}
	}
	os.Exit(0)
}

// The errand that the guide starts gets one signal, however often the guide is told to end: a second would cut its
// shutdown short. Only Ctrl-C does this. It does not get the credentials that .env decides otherwise.
func TestGuideStartsErrand(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(self, filepath.Join(dir, startedByGuide)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	signals, screen := make(chan os.Signal), make(chan string, 20)
	out, in := io.Pipe()
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			screen <- lines.Text()
		}
	}()
	t.Cleanup(func() { _ = in.Close() })
	ctx, cancel := context.WithCancel(t.Context())
	g := &guide{
		terminal: newTerminal(world{
			getenv: func(string) string { return "" }, stdout: in, stderr: in,
			environ: []string{"GITHUB_TOKEN=ghp", "ANTHROPIC_API_KEY=refused", "KEPT=kept", "CLAUDE_CODE_OAUTH_TOKEN="},
			notify:  func() (<-chan os.Signal, func()) { return signals, func() {} },
		}),
		guideOptions: guideOptions{dir: dir},
		env:          map[string]string{"GITHUB_APP_ID": "7", "CLAUDE_CODE_OAUTH_TOKEN": "good"},
	}
	if err := g.start(ctx); err != nil {
		t.Fatal(err)
	}
	sees := func(want string) {
		t.Helper()
		for got := range screen {
			if strings.Contains(got, want) {
				return
			} else if got != "" {
				t.Fatalf("%q instead of %q", got, want)
			}
		}
	}
	sees("GITHUB_TOKEN of your environment is left out, because .env has GITHUB_APP_ID. ")
	sees("ANTHROPIC_API_KEY of your environment is left out, because .env has CLAUDE_CODE_OAUTH_TOKEN. ")
	sees("started with  kept")
	signals <- syscall.SIGHUP
	sees("terminated")
	signals <- syscall.SIGHUP // the shell sends it, too
	signals <- syscall.SIGTERM
	cancel()
	for range 2 {
		signals <- os.Interrupt
		sees("interrupt")
	}
	<-g.ended
	if code := *g.told.Load(); code != exitTerminated {
		t.Errorf("exits with %d", code)
	}
}

// An errand that ends although nobody has told it to does not end the guide in silence.
func TestGuideMissesErrand(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink("/bin/true", filepath.Join(dir, startedByGuide)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	g := &guide{terminal: newTerminal(world{
		stdout: io.Discard, stderr: io.Discard, getenv: func(string) string { return "" }, notify: notifySignals,
	})}
	if err := g.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	err := g.await(t.Context(), func() (bool, error) { return false, nil })
	if err == nil || err.Error() != "errand has ended: exit status 0" {
		t.Error(err)
	}
}

// The guide knows the token of the errand that it starts: that of .env, or of its environment, or one that it chooses,
// because a copy of .env.example has none.
func TestGuideKnowsTheToken(t *testing.T) {
	t.Parallel()
	for of, want := range map[string]string{"": "", "environment": "inherited-0123456789"} {
		var got string
		door := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			got = strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"tasks":[]}`)
		}))
		t.Cleanup(door.Close)
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, ".env"), []byte("# ERRAND_CONSOLE_TOKEN=\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		g := &guide{
			terminal: newTerminal(world{stdout: io.Discard, stderr: io.Discard, getenv: func(name string) string {
				return map[string]string{addressName: door.URL, tokenName: want}[name]
			}}),
			guideOptions: guideOptions{dir: dir}, env: map[string]string{},
		}
		if err := g.setToken(t.Context()); err != nil {
			t.Fatal(err)
		}
		env, err := godotenv.Read(filepath.Join(dir, ".env"))
		if err != nil {
			t.Fatal(err)
		}
		want = cmp.Or(want, env[tokenName])
		if runs, err := g.runs(t.Context()); !runs || err != nil || want == "" || got != want {
			t.Errorf("%s: %v, %v: token %q, want %q", of, runs, err, got, want)
		}
	}
}

type roundTripper func() (*http.Response, error)

func (f roundTripper) RoundTrip(*http.Request) (*http.Response, error) { return f() }

// While the guide waits for the first task, errand may not answer for a while. Once errand is told to end, the guide waits
// for nothing else.
func TestGuideWaitsForErrand(t *testing.T) {
	t.Parallel()
	const (
		running  = `{"tasks":[{"title":"Hello","state":"running"}]}`
		answered = `{"tasks":[{"title":"Hello","state":"ended","ending":{"kind":"answered"}}]}`
		refused  = "" // the connection
	)
	for name, c := range map[string]struct {
		answers []string
		tell    bool // to end, after the last of them
		want    error
	}{
		"restarted": {[]string{running, refused, answered}, false, nil},
		"ended":     {[]string{running, refused}, true, exitTerminated},
	} {
		synctest.Test(t, func(t *testing.T) {
			g := &guide{
				terminal: newTerminal(world{getenv: func(string) string { return "" }, stderr: io.Discard, stdout: io.Discard}),
				ended:    make(chan struct{}),
			}
			answers := slices.Clone(c.answers)
			g.api = &apiClient{base: "http://errand.test", http: &http.Client{Transport: roundTripper(
				func() (*http.Response, error) {
					if len(answers) == 0 {
						t.Error("it asks although errand was told to end")
						return nil, errors.New("asked")
					}
					text := answers[0]
					if answers = answers[1:]; len(answers) == 0 && c.tell {
						g.told.Store(new(exitTerminated))
					}
					if text == refused {
						return nil, syscall.ECONNREFUSED
					}
					return &http.Response{
						StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
						Body: io.NopCloser(strings.NewReader(text)),
					}, nil
				})}}
			time.AfterFunc(10*guidePause, func() { close(g.ended) })
			if err := g.awaitTask(t.Context()); !errors.Is(err, c.want) || len(answers) > 0 {
				t.Errorf("%s: %v, before %v", name, err, answers)
			}
		})
	}
}

// Whoever closes the terminal ends what runs in it, unless nohup has started it.
func TestNotifySignals(t *testing.T) {
	other := make(chan os.Signal, 1)
	clean := func() {
		signal.Notify(other, syscall.SIGHUP) // also if nohup has started the tests
		signal.Stop(other)
	}
	clean()
	t.Cleanup(clean)
	signals, stop := notifySignals()
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if got := <-signals; got != syscall.SIGHUP {
		t.Error(got)
	}
	stop()
	signal.Ignore(syscall.SIGHUP)
	_, stop = notifySignals()
	defer stop()
	if !signal.Ignored(syscall.SIGHUP) {
		t.Error("nohup has no effect")
	}
}
