package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"
)

// The number of retries of a request, and the first pause, which doubles. The real CLI makes 10 attempts in three
// minutes, and 3 after a 529.
const (
	retries         = 5
	overloadRetries = 2
	firstPause      = 100 * time.Millisecond
)

// model sends a request to the model through the run's gateway.
type model struct {
	out *output
	url string
	key string
	web *http.Client
}

func newModel(out *output, session string) *model {
	m := &model{out: out, url: os.Getenv("ANTHROPIC_BASE_URL"), web: &http.Client{Timeout: 8 * time.Second}}
	if n, err := strconv.Atoi(os.Getenv("CLAUDE_CODE_API_KEY_FILE_DESCRIPTOR")); err == nil {
		f := os.NewFile(uintptr(n), "key")
		key, _ := io.ReadAll(io.LimitReader(f, 1<<10))
		_ = f.Close()
		m.key = string(key)
	}
	return m
}

// failure is the reason why a turn has no answer.
type failure struct {
	status int    // of the HTTP response; 0 without one
	kind   string // "error" of the assistant message
	api    string // "api_error" of the result
	text   string
	reset  time.Time // of a usage limit
}

// tell writes the lines before the result of a failed turn.
func (f *failure) tell(out *output) {
	if !f.reset.IsZero() {
		out.say(object{"type": "rate_limit_event", "rate_limit_info": object{
			"status": "rejected", "resetsAt": f.reset.Unix(), "rateLimitType": "five_hour",
		}})
	}
	out.say(object{"type": "assistant", "error": f.kind, "message": object{
		"id": "msg_failed", "model": "<synthetic>", "content": []object{{"type": "text", "text": f.text}},
	}})
}

// result is its result line. The real CLI reports every API failure as a success with an error.
func (f *failure) result() object {
	r := object{"subtype": "success", "is_error": true, "result": f.text, "terminal_reason": "api_error"}
	if f.status != 0 {
		r["api_error_status"] = f.status
	}
	if f.api != "" {
		r["api_error"] = f.api
	}
	return r
}

// ask sends the conversation and accepts any answer.
func (m *model) ask(ctx context.Context, said []entry) *failure {
	var messages []object
	for _, e := range said {
		role := e.Type
		if role == "history" {
			role = "user"
		}
		messages = append(messages, object{"role": role, "content": e.Text})
	}
	body, err := json.Marshal(object{"model": "claude-opus-5-5", "max_tokens": 100, "messages": messages})
	if err != nil {
		return &failure{kind: "unknown", text: err.Error()}
	}
	for attempt := 1; ; attempt++ {
		trouble := m.try(ctx, body)
		if trouble == nil || ctx.Err() != nil || !trouble.again(attempt) {
			return trouble
		}
		wait := firstPause << (attempt - 1)
		line := object{
			"type": "system", "subtype": "api_retry", "attempt": attempt, "max_retries": retries,
			"retry_delay_ms": wait.Milliseconds(), "error": trouble.kind, "error_status": nil,
		}
		if trouble.status != 0 {
			line["error_status"] = trouble.status
		}
		m.out.say(line)
		pause(ctx, wait)
	}
}

// again reports whether a failed attempt should be repeated.
func (f *failure) again(attempt int) bool {
	switch {
	case !f.reset.IsZero(), f.status >= 400 && f.status < 500 && f.status != http.StatusTooManyRequests:
		return false
	case f.status == 529:
		return attempt <= overloadRetries
	}
	return attempt <= retries
}

// try sends one request.
func (m *model) try(ctx context.Context, body []byte) *failure {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, m.url+"/v1/messages?beta=true", bytes.NewReader(body))
	if err != nil {
		return &failure{kind: "unknown", text: err.Error()}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Anthropic-Version", "2023-06-01")
	req.Header.Set("X-Api-Key", m.key)
	resp, err := m.web.Do(req)
	if err == nil {
		defer resp.Body.Close()
		_, err = io.Copy(io.Discard, resp.Body)
	}
	switch {
	case err != nil:
		return &failure{kind: "server_error", api: "connection_failed", text: "Unable to connect to API"}
	case resp.StatusCode == http.StatusOK:
		return nil
	}
	return refused(resp)
}

// refused converts an error response to a failure.
func refused(resp *http.Response) *failure {
	f := &failure{status: resp.StatusCode, kind: "server_error", text: fmt.Sprintf("API Error: %d", resp.StatusCode)}
	switch {
	case resp.StatusCode == http.StatusTooManyRequests &&
		resp.Header.Get("Anthropic-Ratelimit-Unified-Status") == "rejected":
		reset, err := strconv.ParseInt(resp.Header.Get("Anthropic-Ratelimit-Unified-Reset"), 10, 64)
		if err != nil {
			err = errors.New("no time of the reset")
		}
		f.kind, f.api, f.text = "rate_limit", "usage_limit_reached", "You've hit your 5-hour limit"
		if err == nil {
			f.reset = time.Unix(reset, 0)
		}
	case resp.StatusCode == http.StatusTooManyRequests:
		f.kind = "rate_limit"
	case resp.StatusCode == 529:
		f.text = "Repeated 529 Overloaded errors"
	case resp.StatusCode < http.StatusInternalServerError:
		f.kind = "invalid_request"
	}
	return f
}
