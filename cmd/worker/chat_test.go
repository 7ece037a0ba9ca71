package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"image"
	"image/png"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/internal/fake/modelfake"
)

// browser keeps the console's cookies and shows the token.
func (w *world) browser(method, address, body string, hs ...string) *http.Response {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
	w.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
	if err != nil {
		w.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	for i := 0; i+1 < len(hs); i += 2 {
		req.Header.Set(hs[i], hs[i+1])
	}
	resp, err := (&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}).Do(req)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

// chatEvent has the fields of a stream event that the tests read.
type chatEvent struct{ Type, ID, Thread, Content, Result, Partial string }

// talk posts a message and returns its events one after the other; nil at the end.
func (w *world) talk(base, body string) (next func() *chatEvent) {
	w.Helper()
	resp := w.browser(http.MethodPost, base+"/api/chat", body, "Content-Type", "application/json")
	if resp.StatusCode != http.StatusOK {
		w.Fatalf("POST /api/chat: %s", resp.Status)
	}
	lines := bufio.NewScanner(resp.Body)
	return func() *chatEvent {
		w.Helper()
		for lines.Scan() {
			data, ok := strings.CutPrefix(lines.Text(), "data: ")
			if !ok {
				continue
			}
			if data == "[DONE]" {
				return nil
			}
			var s chatEvent
			if err := json.Unmarshal([]byte(data), &s); err != nil {
				w.Fatalf("%s: %v", data, err)
			}
			return &s
		}
		w.Fatalf("the stream broke off: %v", lines.Err())
		return nil
	}
}

// heard skips to the next event of a type.
func (w *world) heard(next func() *chatEvent, kind string) *chatEvent {
	w.Helper()
	for s := next(); s != nil; s = next() {
		if s.Type == kind {
			return s
		}
	}
	w.Fatalf("there was no %s", kind)
	return nil
}

// A message is answered while the answer is written. When it is cancelled, the partial answer stays. The conversation
// continues with both.
func TestConversation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.model.Answer("count", modelfake.Turn{Chunks: []string{"one ", "two ", "thr"}, Hang: true})
	w.model.Answer("go on", modelfake.Turn{Text: "three. ({{turns}} prompts)"})
	local := t.TempDir()
	w.env["ERRAND_DIRS"] = local
	base := w.standalone()
	for path, want := range map[string]int{local: http.StatusOK, "/etc": http.StatusBadRequest} {
		if got := w.browser(http.MethodGet, base+"/api/agents?projectPath="+path, ""); got.StatusCode != want {
			t.Errorf("the agents of %s: %s, want %d", path, got.Status, want)
		}
	}
	if page := w.get(base + "/chat"); !strings.Contains(page, local) {
		t.Errorf("the form does not offer %s: %s", local, page)
	}

	next := w.talk(base, `{"message": "count"}`)
	task := w.heard(next, "task")
	words := ""
	for !strings.Contains(words, "two") { // not all of it: the beginning of a word may be that of a secret
		words += w.heard(next, "token").Content
	}
	if resp := w.browser(http.MethodPost, base+"/tasks/"+task.ID+"/cancel", "thread="+task.Thread, "Content-Type",
		"application/x-www-form-urlencoded"); resp.Header.Get("Location") != "/chat/"+task.Thread+"#latest" {
		t.Errorf("Cancel: %s to %s", resp.Status, resp.Header.Get("Location"))
	}
	if end := w.heard(next, "error"); !strings.Contains(end.Content, "Stopped in the console") ||
		end.Partial != "one two thr" {
		t.Errorf("cancelled: %+v", end)
	}
	if page := w.get(base + "/chat/" + task.Thread); !strings.Contains(page, `interrupted"><p>one two thr</p>`) {
		t.Errorf("the page of what was interrupted: %s", page)
	}

	// By the form, as without scripts.
	form := url.Values{"message": {"go on"}, "thread": {task.Thread}}
	if resp := w.browser(http.MethodPost, base+"/chat", form.Encode(), "Content-Type",
		"application/x-www-form-urlencoded"); resp.StatusCode != http.StatusSeeOther {
		t.Fatalf("POST /chat: %s", resp.Status)
	}
	_, live, _ := strings.Cut(w.get(base+"/chat/"+task.Thread), `data-events="`)
	events, _, _ := strings.Cut(live, `"`)
	_ = w.get(base + events) // to its end
	if page := w.get(base + "/chat/" + task.Thread); !strings.Contains(page, "three. (2 prompts)") ||
		!strings.Contains(page, "one two thr") {
		t.Errorf("the page of what went on: %s", page)
	}
}

// picture sends one with a message. It reaches the model as a picture, and the task's list entry has its name.
func (w *world) picture(base string) {
	w.Helper()
	w.model.Answer("Look", modelfake.Turn{Text: "A dot."})
	var dot bytes.Buffer
	if err := png.Encode(&dot, image.NewGray(image.Rect(0, 0, 1, 1))); err != nil {
		w.Fatal(err)
	}
	data := base64.StdEncoding.EncodeToString(dot.Bytes())
	next := w.talk(base, `{"message": "Look", "pictures": [{"name": "dot.png", "data": "`+data+`"}]}`)
	if first := w.heard(next, "task"); first.ID == "" || w.heard(next, "done").Result != "A dot." {
		w.Fatal("it was not answered")
	}
	calls := w.model.Requests()
	if body := string(calls[len(calls)-1].Body); !strings.Contains(body,
		`"media_type":"image/png","data":"`+data+`"`) {
		w.Errorf("the model was asked %s", body)
	}
}

// asked has the agent ask: the next message of its thread is the answer, through the CLI's own tool call and back.
func (w *world) asked(base string) {
	w.Helper()
	w.model.Answer("paint",
		modelfake.Turn{Tools: []modelfake.ToolCall{{
			Name: "mcp__errand__ask_user", Input: map[string]any{
				"question": "Which colour?", "options": []string{"red", "blue"},
			},
		}}},
		modelfake.Turn{Text: "Painted."})
	before := len(w.model.Requests())
	resp, err := http.DefaultClient.Do(w.chatRequest(w.Context(), base, `{"message":"paint","thread":"t2"}`))
	if err != nil {
		w.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() && !strings.Contains(lines.Text(), `"type":"question"`) {
	}
	if !strings.Contains(lines.Text(), `"content":"Which colour?"`) ||
		!strings.Contains(lines.Text(), `"options":["red","blue"]`) {
		w.Fatalf("asked %q, %v", lines.Text(), lines.Err())
	}
	if body := w.chat(w.Context(), base, `{"message":"2","thread":"t2"}`); !strings.Contains(body,
		`"result":"Painted."`) {
		w.Errorf("the reply's stream is that of the task it answers, and was\n%s", body)
	}
	calls := w.model.Requests()[before:]
	if last := string(calls[len(calls)-1].Body); len(calls) != 2 || !strings.Contains(last, "answered: blue") {
		w.Errorf("%d calls, the last one %s", len(calls), last)
	}
}
