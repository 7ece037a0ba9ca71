package peers

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/internal/fake/modelfake"
	"github.com/errand-fleet/errand/internal/fake/slackfake"
)

// emulator is a Slack that others wrote, with its errand's token and Ann's. It lacks rate limits, streaming, Socket
// Mode, interactivity and events (at 0.12.2): those that we send in its name are signed by our own fake.
type emulator struct {
	*testing.T
	url string
}

func emulate(t *testing.T) emulator {
	t.Helper()
	var up struct{ URL string }
	node(t, nil, modern(t), "emulate.mjs", &up)
	return emulator{t, up.URL}
}

// modern is a Node that the emulator runs on: the machine's, or the one that npm brought.
func modern(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "node", "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	major, _, _ := strings.Cut(strings.TrimPrefix(string(out), "v"), ".")
	if n, _ := strconv.Atoi(major); n > 22 {
		return "node"
	}
	return filepath.Join("node_modules", ".bin", "node")
}

// call asks the emulator and decodes the answer.
func (e emulator) call(token, method string, form url.Values, answer any) {
	e.Helper()
	req, err := http.NewRequestWithContext(limited(e.T), http.MethodPost, e.url+"/api/"+method,
		strings.NewReader(form.Encode()))
	if err != nil {
		e.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		e.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	if err := json.Unmarshal(body, answer); err != nil || !bytes.Contains(body, []byte(`"ok":true`)) {
		e.Fatalf("%s: %s", method, body)
	}
}

// proxy is where our worker finds the emulator, and fills two gaps of it. It knows a token only as a header, while
// slack-go sends it in the form, as Slack allows; and what a bot posts has a bot_id only if the call says so. refused
// is called for every rejected call.
func (e emulator) proxy(refused func(method, answer string)) string {
	target, err := url.Parse(e.url)
	if err != nil {
		e.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			if r.Out.Header.Get("Content-Type") != "application/x-www-form-urlencoded" {
				return
			}
			body, _ := io.ReadAll(r.Out.Body)
			form, _ := url.ParseQuery(string(body))
			if token := form.Get("token"); token != "" {
				r.Out.Header.Set("Authorization", "Bearer "+token)
			}
			form.Set("bot_id", "B0ERRAND")
			body = []byte(form.Encode())
			r.Out.Body, r.Out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		},
		ModifyResponse: func(r *http.Response) error {
			body, err := io.ReadAll(r.Body)
			if !bytes.Contains(body, []byte(`"ok":true`)) {
				refused(r.Request.URL.Path, string(body))
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			return err
		},
	}
	server := httptest.NewServer(proxy)
	e.Cleanup(server.Close)
	return server.URL + "/api/"
}

type message struct {
	User      string `json:"user"`
	Text      string `json:"text"`
	TS        string `json:"ts"`
	Reactions []struct{ Name string }
	Metadata  struct {
		EventType string         `json:"event_type"`
		Payload   map[string]any `json:"event_payload"`
	} `json:"metadata"`
	Blocks json.RawMessage `json:"blocks"`
}

// A mention in an emulated workspace gets its status, its answer and its reactions, from a whole errand with the real
// CLI.
func TestErrandInAnEmulatedWorkspace(t *testing.T) {
	t.Parallel()
	e := emulate(t)
	model := modelfake.New()
	t.Cleanup(model.Close)
	model.Answer("what is", modelfake.Turn{Text: "It is **42**, <!channel>."})
	signer := slackfake.New(slackfake.Config{TeamID: "T000000001"})
	t.Cleanup(signer.Close)
	api := e.proxy(func(method, answer string) {
		if method != "/api/assistant.threads.setStatus" { // the emulator has no such method, and its failures fail nothing
			t.Errorf("%s was refused: %s", method, answer)
		}
	})

	state := t.TempDir()
	console := run(t, []string{
		"ERRAND_SANDBOX=none", "ERRAND_ALLOW_ROOT=true",
		"ERRAND_STATE_DIR=" + state, "ERRAND_HTTP_ADDR=127.0.0.1:0", "ERRAND_WORKER_ADDR=127.0.0.1:0",
		"ANTHROPIC_BASE_URL=" + model.URL(), "ANTHROPIC_API_KEY=sk-ant-peer-key", "SLACK_API_URL=" + api,
		"SLACK_BOT_TOKEN=xoxb-test", "SLACK_SIGNING_SECRET=slack-secret",
	}, "console", filepath.Join("..", "..", "bin", "worker"), "-standalone")
	base, _, _ := strings.Cut(console, "/login?")
	signer.Deliver(base + "/slack/events")

	var said struct{ Channel, TS string }
	e.call("xoxp-ann", "chat.postMessage", url.Values{
		"channel": {"C000000001"}, "text": {"<@U0ERRAND> what is the answer?"},
	}, &said)
	mention := signer.Envelope(map[string]any{
		"type": "app_mention", "user": "U000000001", "channel": said.Channel, "ts": said.TS, "event_ts": said.TS,
		"text": "<@U0ERRAND> what is the answer?",
	})
	for range 2 { // once more, as Slack does
		resp, err := signer.Send(t.Context(), mention, slackfake.SendOptions{})
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("mention: %v, %v", resp, err)
		}
	}
	thread := e.answered(said.Channel, said.TS)
	if len(thread) != 3 {
		t.Fatalf("thread %+v", thread)
	}
	request, status, answer := thread[0], thread[1], thread[2] // nothing was said twice
	if request.TS != said.TS || status.User != "U0ERRAND" || status.Metadata.EventType != "errand_task" {
		t.Errorf("request %+v, status %+v", request, status)
	}
	if shown := string(answer.Blocks); !strings.Contains(shown, "It is **42**") ||
		strings.Contains(shown, "<!channel>") {
		t.Errorf("answer %s", shown)
	}
}

// answered waits for the final message and for what comes after it: the end of the status, and then that the eyes are
// taken off the request.
func (e emulator) answered(channel, ts string) []message {
	e.Helper()
	ctx := limited(e.T)
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for {
		var thread struct{ Messages []message }
		e.call("xoxb-test", "conversations.replies",
			url.Values{"channel": {channel}, "ts": {ts}, "include_all_metadata": {"true"}}, &thread)
		list := thread.Messages
		part, _ := list[len(list)-1].Metadata.Payload["part"].(string)
		if strings.HasPrefix(part, "final") && strings.HasPrefix(list[1].Text, "✅ Done") &&
			len(list[0].Reactions) == 0 {
			return list
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			e.Fatalf("no answer in %+v", thread.Messages)
		}
	}
}
