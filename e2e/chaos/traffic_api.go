package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// call sends a request to the front door's API.
func (t *traffic) call(ctx context.Context, method, path string, body any) (*http.Response, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("ask the API: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, method, t.base+path, bytes.NewReader(data)) //nolint:gosec // the harness's front door, on loopback
	if err != nil {
		return nil, fmt.Errorf("ask the API: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+consoleToken)
	req.Header.Set("Content-Type", "application/json")
	resp, err := t.web.Do(req) //nolint:gosec // likewise
	if err != nil {
		return nil, fmt.Errorf("ask the API: %w", err)
	}
	if resp.StatusCode/100 != 2 {
		said, _ := io.ReadAll(io.LimitReader(resp.Body, 300))
		_ = resp.Body.Close()
		return nil, fmt.Errorf("ask the API for %s: %s: %s", path, resp.Status, said)
	}
	return resp, nil
}

// chatEvent is the relevant part of a line of a chat's stream.
type chatEvent struct {
	Type    string `json:"type"`
	ID      string `json:"id"`
	Content string `json:"content"`
	Result  string `json:"result"`
}

// chat posts a message and reads its stream to the end. It does not repeat a message that was not accepted, because
// errand cannot distinguish that from a second message with the same text.
func (t *traffic) chat(ctx context.Context, s step) {
	t.count("chats")
	body := map[string]string{"message": "please do " + s.orders.String(), "thread": fmt.Sprintf("c-%d", s.thread)}
	pool := poolName(0)
	if s.thread%2 == 0 {
		h := t.w.home(s.thread / 2)
		body["repo"], pool = h.repo, h.pool
	}
	token := s.orders.Token
	t.ledger.add(event{token: token, place: inChat, thread: fmt.Sprint(inChat, s.thread), pool: pool})
	defer t.ledger.change(token, func(e *event) { e.closed = true })
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-t.hangUp:
			cancel()
		case <-ctx.Done():
		}
	}()
	resp, err := t.call(ctx, http.MethodPost, "/api/chat", body)
	if err != nil {
		t.count("chats not taken")
		t.w.note("not accepted: %s: %v", token, err)
		return
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		var e chatEvent
		if ok && json.Unmarshal([]byte(data), &e) == nil {
			t.chatted(token, e)
		}
	}
}

// chatted records the events of a stream.
func (t *traffic) chatted(token string, e chatEvent) {
	switch {
	case e.Type == "task":
		t.ledger.change(token, func(ev *event) { ev.id = e.ID })
		t.accept(token)
	case e.Type == "done":
		t.ledger.change(token, func(ev *event) { ev.endings = append(ev.endings, e.Result) })
	// the task continues; its ending is read at the end
	case e.Type == "error" && strings.HasPrefix(e.Content, "The stream was interrupted"):
		t.count("streams interrupted")
	case e.Type == "error":
		t.ledger.change(token, func(ev *event) { ev.endings = append(ev.endings, e.Content) })
	}
}

// askEndings reads the endings of chats with interrupted streams from the API.
func (t *traffic) askEndings(ctx context.Context) {
	for _, e := range t.ledger.all() {
		if e.place != inChat || !e.accepted || !e.closed || len(e.endings) > 0 {
			continue
		}
		if text, ended := t.ending(ctx, e.id); ended {
			t.ledger.change(e.token, func(ev *event) { ev.endings = []string{text} })
		}
	}
}

// ending reads the ending of a task.
func (t *traffic) ending(ctx context.Context, id string) (text string, ended bool) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	resp, err := t.call(ctx, http.MethodGet, "/api/tasks/"+id, nil)
	if err != nil {
		return "", false
	}
	defer resp.Body.Close()
	var s struct {
		Ending *struct {
			Kind   string `json:"kind"`
			Result struct {
				Text string `json:"text"`
			} `json:"result"`
		} `json:"ending"`
	}
	if json.NewDecoder(resp.Body).Decode(&s) != nil || s.Ending == nil {
		return "", false
	}
	if s.Ending.Kind == "answered" {
		return s.Ending.Result.Text, true
	}
	return s.Ending.Kind, true
}

// cancel stops a task through the API, if its ID is known by then.
func (t *traffic) cancel(ctx context.Context, token string) {
	for range 5 {
		if e := t.ledger.get(token); e.id != "" && e.accepted {
			call, stop := context.WithTimeout(ctx, 5*time.Second)
			resp, err := t.call(call, http.MethodPost, "/api/tasks/"+e.id+"/cancel", nil)
			stop()
			if err == nil {
				_ = resp.Body.Close()
				t.count("cancels")
				t.w.note("cancelled: %s", token)
				return
			}
			t.w.note("cancel %s: %v", token, err)
		}
		pause(ctx, time.Second)
	}
}
