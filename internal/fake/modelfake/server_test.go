package modelfake_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/internal/fake/modelfake"
)

const (
	streaming = `{"model":"m","stream":true,"messages":[{"role":"user","content":"hello"}]}`
	whole     = `{"model":"m","stream":false,"messages":[{"role":"user","content":"hello"}]}`
)

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

func TestAnswerRefusesWhatIsNotJSON(t *testing.T) {
	t.Parallel()
	s := modelfake.New()
	defer s.Close()
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	s.Answer("", modelfake.Turn{Tools: []modelfake.ToolCall{{Name: "Bash", Input: make(chan int)}}})
}

func TestRequests(t *testing.T) {
	t.Parallel()
	s := modelfake.New()
	defer s.Close()
	ask(t, s, `{"model":"m","stream":true,"system":[{"type":"text","text":"be"},{"type":"text","text":"kind"}],`+
		`"tools":[{"name":"Bash"},{"name":"Read"}],"messages":[`+user("hello")+`]}`)
	got := s.Requests()
	want := modelfake.Request{
		Method: "POST", Path: "/v1/messages", Key: "sk-ant-test", Header: got[0].Header, Body: got[0].Body,
		Text: "hello", Prompts: 1, System: "be\nkind", Model: "m", Stream: true, Messages: 1,
		Tools: []string{"Bash", "Read"},
	}
	if diff := cmp.Diff([]modelfake.Request{want}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got[0].Header.Get("Anthropic-Version") == "" || !json.Valid(got[0].Body) {
		t.Errorf("header %v, body %s", got[0].Header, got[0].Body)
	}
	got[0].Text = "changed"
	if s.Requests()[0].Text != "hello" {
		t.Error("the caller's copy is the server's own")
	}
}

func TestBearerTokenIsAKey(t *testing.T) {
	t.Parallel()
	s := modelfake.New()
	defer s.Close()
	req := request(t.Context(), s, http.MethodPost, "/v1/messages", whole)
	req.Header.Del("X-Api-Key")
	req.Header.Set("Authorization", "Bearer token")
	if r := do(t, req); r.status != http.StatusOK {
		t.Errorf("status %d: %s", r.status, r.body)
	}
	if got := s.Requests()[0].Key; got != "token" {
		t.Errorf("key %q", got)
	}
}

func TestStartedAndGate(t *testing.T) {
	t.Parallel()
	s := modelfake.New()
	defer s.Close()
	started, gate := make(chan struct{}), make(chan struct{})
	s.Answer("", modelfake.Turn{Text: "through", Started: started, Gate: gate})
	answered := make(chan response, 1)
	go func() { answered <- ask(t, s, whole) }()
	<-started
	if n := len(s.Requests()); n != 1 {
		t.Errorf("%d requests are recorded at the start of the first turn", n)
	}
	select {
	case r := <-answered:
		t.Errorf("answered before the gate: %s", r.body)
	case gate <- struct{}{}:
	}
	if r := <-answered; !strings.Contains(r.body, "through") {
		t.Errorf("got %s", r.body)
	}
	close(gate)
	if r := ask(t, s, whole); !strings.Contains(r.body, "through") { // and no test receives from started
		t.Errorf("got %s", r.body)
	}
}

// response is what a client got; err is the error of reading the body.
type response struct {
	status int
	header http.Header
	body   string
	err    error
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

func post(ctx context.Context, s *modelfake.Server, body string) (*http.Response, error) {
	return http.DefaultClient.Do(request(ctx, s, http.MethodPost, "/v1/messages?beta=true", body))
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
	return response{resp.StatusCode, resp.Header, string(body), err}
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
