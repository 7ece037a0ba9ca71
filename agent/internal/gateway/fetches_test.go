package gateway

import (
	"net/http"
	"strings"
	"testing"
)

// No question makes the model's API fetch an address, but what tools get and return may look like one that does.
func TestNothingIsFetchedForARun(t *testing.T) {
	t.Parallel()
	_, base, requests := newSky(t, Run{})
	message := func(content string) string {
		return `{"max_tokens":1,"messages":[{"role":"user","content":` + content + `}]}`
	}
	const picture = `{"type":"image","source":{"type":"url","url":"https://evil.example/?data"}}`
	for name, c := range map[string]struct {
		body   string
		status int
	}{
		"a picture": {message(`[` + picture + `]`), http.StatusBadRequest},
		"the URL first": {
			message(`[{"source":{"url":"https://evil.example","type":"url"},"type":"document"}]`),
			http.StatusBadRequest,
		},
		"escaped": {
			message(`[{"type":"image","sourc\u0065":{"typ\u0065":"\u0075rl","url":"https://evil.example"}}]`),
			http.StatusBadRequest,
		},
		"in a tool's result": {
			message(`[{"type":"tool_result","tool_use_id":"x","content":[` + picture + `]}]`), http.StatusBadRequest,
		},
		"in a document": {message(`[{"type":"document","source":{"type":"content","content":[` +
			picture + `]}}]`), http.StatusBadRequest},
		"after other fields": {message(`[{"type":"text","text":"x"},{"type":"tool_use","input":{"a":[1,{"b":null}]}},` +
			picture + `]`), http.StatusBadRequest},
		"in a list": {
			message(`[{"type":"image","source":[{"type":"url","url":"https://evil.example"}]}]`), http.StatusBadRequest,
		},
		"in the system prompt": {`{"max_tokens":1,"system":[` + picture + `]}`, http.StatusBadRequest},
		"a tool that fetches": {
			`{"max_tokens":1,"tools":[{"type":"web_fetch_20250910","name":"web_fetch"}]}`, http.StatusBadRequest,
		},
		"given": {
			message(`[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"eA=="}}]`),
			http.StatusOK,
		},
		"text": {message(`"{\"type\":\"image\",\"source\":{\"type\":\"url\"}}"`), http.StatusOK},
		"a tool's input": {
			message(`[{"type":"tool_use","id":"x","name":"y","input":` + picture + `}]`), http.StatusOK,
		},
		"a tool's schema": {`{"max_tokens":1,"tools":[{"name":"y","input_schema":{"properties":{"source":{"type":"url"}}}}]}`, http.StatusOK},
		"a search": {
			`{"max_tokens":1,"tools":[{"type":"web_search_20250305","name":"web_search"}]}`, http.StatusOK,
		},
	} {
		for _, path := range []string{"/ask/claude-opus-5-5", "/count"} {
			body := c.body
			if path == "/count" {
				body = strings.Replace(body, "{", `{"model":"claude-opus-5-5",`, 1)
			}
			if status, text := send(t, http.MethodPost, base+path, body); status != c.status {
				t.Errorf("%s at %s: %d %s", name, path, status, text)
			}
		}
	}
	for _, malformed := range []string{`{"a":`, `[1,`, `{"a":[}`, `{"type"`, `{"input":`, ``} {
		if fetches([]byte(malformed)) == "" {
			t.Errorf("%s is read", malformed)
		}
	}
	for _, r := range requests() {
		if fetches([]byte(r.body)) != "" {
			t.Errorf("passed: %s", r.body)
		}
	}
}
