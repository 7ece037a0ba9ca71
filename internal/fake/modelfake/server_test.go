package modelfake_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/internal/fake/modelfake"
)

const whole = `{"model":"m","stream":false,"messages":[{"role":"user","content":"hello"}]}`

func TestMatch(t *testing.T) {
	t.Parallel()
	s := modelfake.New()
	defer s.Close()
	say := func(text string) modelfake.Turn { return modelfake.Turn{Text: text} }
	s.Answer("fix", say("first fix"), say("second turn"))
	s.Answer("bug", say("bug"))
	s.Answer("", say("old default"))
	s.Answer("", say("default"))
	s.Answer("fix it", say("last fix"))

	for prompt, want := range map[string]string{
		"fix that":        "first fix",
		"fix it":          "last fix",
		"fix it, bug":     "last fix",
		"fix that bug":    "bug",
		"something else":  "default",
		"quote {{turns}}": "default",
	} {
		if got := answerText(t, s, user(prompt)); got != want {
			t.Errorf("%q is answered by %q, want %q", prompt, got, want)
		}
	}
	if got := answerText(t, s, user("fix that"), assistant("first fix"), toolResult()); got != "second turn" {
		t.Errorf("the second turn is %q", got)
	}
	if got, want := answerText(t, s, user("bug"), assistant("bug"), toolResult()),
		`modelfake: no turn 1 for "bug"`; got != want {
		t.Errorf("past the last turn: %q, want %q", got, want)
	}
}

func TestNoMatchSaysSo(t *testing.T) {
	t.Parallel()
	s := modelfake.New()
	defer s.Close()
	s.Answer("other", modelfake.Turn{Text: "no"})
	if got, want := answerText(t, s, user("hello")), `modelfake: no turn 0 for "hello"`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPromptIsNotExpandedTwice(t *testing.T) {
	t.Parallel()
	s := modelfake.New()
	defer s.Close()
	s.Answer("", modelfake.Turn{Text: "{{prompt}}"})
	if got := answerText(t, s, user("{{turns}}")); got != "{{turns}}" {
		t.Errorf("got %q", got)
	}
}

// response is what a client got.
type response struct {
	status int
	header http.Header
	body   string
}

func request(ctx context.Context, s *modelfake.Server, method, path, body string) *http.Request {
	req, err := http.NewRequestWithContext(ctx, method, s.URL()+path, strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	req.Header.Set("X-Api-Key", "sk-ant-test")
	req.Header.Set("Anthropic-Version", "2023-06-01")
	return req
}

func ask(t *testing.T, s *modelfake.Server, body string) response {
	t.Helper()
	return do(t, request(t.Context(), s, http.MethodPost, "/v1/messages?beta=true", body))
}

func do(t *testing.T, req *http.Request) response {
	t.Helper()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Error(err)
		return response{}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return response{resp.StatusCode, resp.Header, string(body)}
}

// answerText asks without streaming and returns the only text of the answer.
func answerText(t *testing.T, s *modelfake.Server, messages ...string) string {
	t.Helper()
	var got struct{ Content []struct{ Text string } }
	r := ask(t, s, `{"messages":[`+strings.Join(messages, ",")+`]}`)
	if err := json.Unmarshal([]byte(r.body), &got); err != nil || len(got.Content) != 1 {
		t.Fatalf("%v: %s", err, r.body)
	}
	return got.Content[0].Text
}

func user(text string) string      { return `{"role":"user","content":"` + text + `"}` }
func assistant(text string) string { return `{"role":"assistant","content":"` + text + `"}` }
func toolResult() string {
	return `{"role":"user","content":[{"type":"tool_result","content":"done"}]}`
}
