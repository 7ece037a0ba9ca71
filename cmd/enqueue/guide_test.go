package main

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/joho/godotenv"

	"github.com/errand-fleet/errand/internal/fake/githubfake"
	"github.com/errand-fleet/errand/internal/fake/slackfake"
	"github.com/errand-fleet/errand/tasks"
)

// guided is a world in which the guide can end: errand runs, and its first task has ended.
func guided(t *testing.T) (w world, dir string) {
	t.Helper()
	f := newFrontDoor(t)
	id := f.submit("What can you do?")
	f.End(f.Claim(id), tasks.Ending{Kind: tasks.Answered})
	slack := slackfake.New(slackfake.Config{Channels: []slackfake.Channel{
		{ID: "C0PAYMENTS", Name: "payments", Outside: true},
		{ID: "C0OLD", Name: "old", Archived: true},
		{ID: "G0SECRET", Name: "secret", Private: true},
	}})
	t.Cleanup(slack.Close)
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Path != "/v1/messages/count_tokens" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		if r.Header.Get("Authorization") != "Bearer sk-ant-oat-good" && r.Header.Get("X-Api-Key") != "sk-ant-good" {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w,
				`{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}`)
			return
		}
		_, _ = io.WriteString(w, `{"input_tokens":8}`)
	}))
	t.Cleanup(model.Close)
	dir = t.TempDir()
	settings := fmt.Sprintf("ERRAND_HTTP_ADDR=%s\nERRAND_CONSOLE_TOKEN=%s\n", f.server.URL, testToken)
	if err := os.WriteFile(filepath.Join(dir, ".env"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"SLACK_API_URL": slack.APIURL(), "ANTHROPIC_BASE_URL": model.URL}
	return world{getenv: func(name string) string { return env[name] }}, dir
}

// What the person enters is tried before it is written, and what is refused is asked for again.
func TestGuide(t *testing.T) {
	t.Parallel()
	w, dir := guided(t)
	var said strings.Builder
	w.stdout, w.stderr = io.Discard, &said
	w.stdin = strings.NewReader(strings.Join([]string{
		"sk-wrong", "sk-ant-oat-good", // the model
		"xoxe-wrong", "xoxe.xoxp-test", "xoxb-wrong", "xoxb-test", // the app is created, and installed
		"", "xapp-wrong", "xapp-test",
		"#nowhere", "payments",
	}, "\n"))
	args := []string{"init", "guide", "--no-github", "--dir", dir}
	if code := run(t.Context(), args, w); code != 0 {
		t.Fatalf("exit %d: %s", code, said.String())
	}
	at := 0
	for _, want := range []string{
		"refuses the credential: invalid x-api-key", "The model's API accepts it", "create the Slack app: invalid_auth",
		"https://api.slack.com/apps/A0ERRAND/install-on-team",
		"try the bot token: invalid_auth", "errand needs it to receive mentions",
		"try the app-level token: invalid_auth", "  #payments\n", "there is no channel #nowhere", "errand is running",
		"The first task has ended", "errand is set up",
	} {
		i := strings.Index(said.String()[at:], want)
		if i < 0 {
			t.Fatalf("it does not say %q in order: %s", want, said.String())
		}
		at += i
	}
	for _, hidden := range []string{"#old", "#secret", "sk-ant-oat-good", "xoxb-test"} {
		if strings.Contains(said.String(), hidden) {
			t.Errorf("it shows %s", hidden)
		}
	}
	got, err := godotenv.Read(filepath.Join(dir, ".env"))
	if err != nil {
		t.Fatal(err)
	}
	if got["CLAUDE_CODE_OAUTH_TOKEN"] != "sk-ant-oat-good" || got["SLACK_BOT_TOKEN"] != "xoxb-test" ||
		got["SLACK_APP_TOKEN"] != "xapp-test" || len(got) != 6 {
		t.Errorf("written: %v", got)
	}

	// Without the token that was asked for last, as after an interruption, the next call goes on there.
	if err := setVariables(filepath.Join(dir, ".env"), [][2]string{{"SLACK_APP_TOKEN", ""}}); err != nil {
		t.Fatal(err)
	}
	w.stdin = strings.NewReader("xapp-test\n")
	if code := run(t.Context(), args, w); code != 0 {
		t.Errorf("exit %d: %s", code, said.String())
	}
	if again, err := godotenv.Read(filepath.Join(dir, ".env")); err != nil || !maps.Equal(again, got) {
		t.Errorf("written: %v %v", again, err)
	}

	// A further call has nothing to ask.
	w.stdin = strings.NewReader("")
	if code := run(t.Context(), args, w); code != 0 {
		t.Errorf("exit %d: %s", code, said.String())
	}
}

// With a public URL, Slack sends events there, and signs them with a secret that the guide asks for.
func TestGuideWithURL(t *testing.T) {
	t.Parallel()
	w, dir := guided(t)
	var said strings.Builder
	w.stdout, w.stderr = io.Discard, &said
	w.stdin = strings.NewReader("sk-ant-good\nxoxb-test\ns3cr3t\n#payments\n")
	args := []string{"init", "guide", "--no-github", "--url", "https://e.example", "--dir", dir}
	if code := run(t.Context(), args, w); code != 0 {
		t.Errorf("exit %d: %s", code, said.String())
	}
	if !strings.Contains(said.String(), "https://api.slack.com/apps?new_app=1&manifest_json=%7B%22display_information") {
		t.Errorf("no link: %s", said.String())
	}
	got, err := godotenv.Read(filepath.Join(dir, ".env"))
	if err != nil || got["ANTHROPIC_API_KEY"] != "sk-ant-good" || got["SLACK_SIGNING_SECRET"] != "s3cr3t" ||
		got["SLACK_BOT_TOKEN"] != "xoxb-test" ||
		got["ERRAND_PUBLIC_URL"] != "https://e.example" {
		t.Errorf("written: %v %v", got, err)
	}
}

// A credential of the environment is taken without a question, unless the API refuses it. One that could not be tried
// is taken with a remark. The address where it was tried is written, too.
func TestGuideTakesKeyOfEnvironment(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ variable, value, path, answers, says, written string }{
		{"ANTHROPIC_API_KEY", "sk-ant-good", "", "\n", "The model's API accepts it", "sk-ant-good"},
		{"CLAUDE_CODE_OAUTH_TOKEN", "sk-ant-oat-good", "", "\n", "The model's API accepts it", "sk-ant-oat-good"},
		{"ANTHROPIC_API_KEY", "sk-wrong", "", "sk-ant-good\n\n", "invalid x-api-key", "sk-ant-good"},
		{"ANTHROPIC_API_KEY", "sk-gateway", "/gateway", "\n", "It was not tried: ", "sk-gateway"},
	} {
		w, dir := guided(t)
		getenv := w.getenv
		w.getenv = func(name string) string {
			switch name {
			case c.variable:
				return c.value
			case "ANTHROPIC_BASE_URL":
				return getenv(name) + c.path
			}
			return getenv(name)
		}
		var said strings.Builder
		w.stdout, w.stderr, w.stdin = io.Discard, &said, strings.NewReader(c.answers) // the last line skips Slack
		if code := run(t.Context(), []string{"init", "guide", "--no-github", "--dir", dir}, w); code != 0 {
			t.Errorf("%s: exit %d: %s", c.value, code, said.String())
		}
		got, err := godotenv.Read(filepath.Join(dir, ".env"))
		if err != nil || got["ANTHROPIC_API_KEY"]+got["CLAUDE_CODE_OAUTH_TOKEN"] != c.written ||
			got["ANTHROPIC_BASE_URL"] != w.getenv("ANTHROPIC_BASE_URL") || !strings.Contains(said.String(), c.says) {
			t.Errorf("%s: written %v %v: %s", c.value, got, err, said.String())
		}
	}
}

// waiter is a person who watches until the guide waits for errand.
type waiter struct {
	strings.Builder
	leave context.CancelFunc
}

func (w *waiter) Write(text []byte) (int, error) {
	if strings.Contains(string(text), "The guide waits for it") {
		w.leave()
	}
	return w.Builder.Write(text)
}

// The guide says why it cannot start errand, and when that ends before its front door answers. It does not start it if
// somebody else is going to.
func TestGuideStarts(t *testing.T) {
	broken := t.TempDir()
	if err := os.Symlink("/bin/false", filepath.Join(broken, "worker")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ path, flag, says string }{
		{t.TempDir(), "--no-github", "start errand: exec: "},
		{broken, "--no-github", "errand has ended: exit status 1"},
		{broken, "--no-start", "context canceled"},
	} {
		t.Setenv("PATH", c.path)
		dir := t.TempDir()
		settings := "ANTHROPIC_API_KEY=x\nGITHUB_TOKEN=x\nERRAND_HTTP_ADDR=127.0.0.1:1\nERRAND_CONSOLE_TOKEN=x\n"
		if err := os.WriteFile(filepath.Join(dir, ".env"), []byte(settings), 0o600); err != nil {
			t.Fatal(err)
		}
		ctx, leave := context.WithCancel(t.Context())
		said := &waiter{leave: leave}
		w := world{
			getenv: func(string) string { return "" }, stdin: strings.NewReader("\n"), stdout: io.Discard, stderr: said,
			notify: notifySignals,
		}
		if code := run(ctx, []string{"init", "guide", c.flag, "--dir", dir}, w); code != 1 ||
			!strings.Contains(said.String(), c.says) {
			t.Errorf("exit %d, without %q: %s", code, c.says, said.String())
		}
	}
}

// A URL that Slack and GitHub would not accept is refused before anything is asked or written.
func TestGuideRefusesURL(t *testing.T) {
	t.Parallel()
	w, dir := guided(t)
	w.stdout, w.stderr, w.stdin = io.Discard, io.Discard, strings.NewReader("")
	if code := run(t.Context(), []string{"init", "guide", "--url", "e.example", "--dir", dir}, w); code != 2 {
		t.Errorf("exit %d", code)
	}
	if got, err := godotenv.Read(filepath.Join(dir, ".env")); err != nil || len(got) != 2 {
		t.Errorf("written: %v %v", got, err)
	}
}

// After an interruption between the tokens and the channels, the guide asks for the channels only. Of a refused answer
// nothing is kept.
func TestGuideChannelsAfterInterruption(t *testing.T) {
	t.Parallel()
	slack := slackfake.New(slackfake.Config{Channels: []slackfake.Channel{{
		ID: "C0PAYMENTS", Name: "payments", Outside: true,
	}, {ID: "C0WEB", Name: "web", Outside: true}}})
	t.Cleanup(slack.Close)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "errand.yaml"),
		[]byte("repositories: {acme/web: {}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	setUp := func(answers string) error {
		w := world{
			getenv: func(string) string { return slack.APIURL() }, stdin: strings.NewReader(answers),
			stdout: io.Discard, stderr: io.Discard,
		}
		g := &guide{
			terminal: newTerminal(w), guideOptions: guideOptions{dir: dir}, repositories: []string{"acme/web"},
			env: map[string]string{"SLACK_BOT_TOKEN": "xoxb-test", "SLACK_APP_TOKEN": "xapp-test"},
		}
		return g.setUpSlack(t.Context())
	}
	slack.Fail("conversations.list", slackfake.Failure{Error: "internal_error"})
	if err := setUp(""); err == nil {
		t.Error("the channels could not be listed")
	}
	if err := setUp("#payments #typo\n#web\n"); err != nil {
		t.Fatal(err)
	}
	want := "repositories: {acme/web: {}}\n\nchannels:\n    C0WEB:\n        repository: acme/web\n"
	if got := read(t, dir, "errand.yaml"); got != want {
		t.Errorf("errand.yaml is %s", got)
	}
	if err := setUp(""); err != nil { // has nothing to ask
		t.Error(err)
	}
}

// A GitHub App whose key is in .env itself, with \n for line ends or in several lines, is used as it is.
func TestGuideWithKeyInSettings(t *testing.T) {
	t.Parallel()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	hub, err := githubfake.New(githubfake.Config{AppID: 77, AppKey: &key.PublicKey, InstallationID: 5})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(hub.Close)
	if _, err := hub.CreateRepo("acme", "payments", nil); err != nil {
		t.Fatal(err)
	}
	text := string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
	for _, value := range []string{text, strings.ReplaceAll(text, "\n", `\n`)} {
		w, dir := guided(t)
		getenv := w.getenv
		w.getenv = func(name string) string {
			return map[string]string{"GITHUB_API_URL": hub.APIURL(), "GITHUB_URL": hub.URL()}[name] + getenv(name)
		}
		var said strings.Builder
		w.stdout, w.stderr, w.stdin = io.Discard, &said, strings.NewReader("")
		settings := [][2]string{
			{"GITHUB_APP_ID", "77"},
			{"GITHUB_APP_PRIVATE_KEY", value},
			{"ANTHROPIC_API_KEY", "sk-ant-good"},
			{"SLACK_BOT_TOKEN", "xoxb-test"},
			{"SLACK_SIGNING_SECRET", "s3cr3t"},
		}
		if err := setVariables(filepath.Join(dir, ".env"), settings); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "errand.yaml"), []byte("channels: {}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if code := run(t.Context(), []string{"init", "guide", "--dir", dir}, w); code != 0 {
			t.Errorf("exit %d: %s", code, said.String())
		}
		if yaml := read(t, dir, "errand.yaml"); !strings.Contains(yaml, "acme/payments: {}") {
			t.Errorf("errand.yaml is %s", yaml)
		}
	}
}
