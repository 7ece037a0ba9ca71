package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/errand-fleet/errand/internal/await"
	"github.com/errand-fleet/errand/tasks"
)

// span is one as OTLP's JSON has it. e2e/peers has OpenTelemetry's own receiver.
type span struct {
	TraceID, SpanID, ParentSpanID, Name string
	StartTimeUnixNano, EndTimeUnixNano  string // of the same length
	Attributes                          []struct {
		Key   string
		Value struct{ StringValue string }
	}
	Status struct{ Code int }
}

// receiver is an OTLP receiver over HTTP.
type receiver struct {
	*httptest.Server

	mu      sync.Mutex
	spans   []span
	text    string
	tokens  []string
	arrived chan struct{} // has a value for each request
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{arrived: make(chan struct{}, 100)}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		var got struct {
			ResourceSpans []struct{ ScopeSpans []struct{ Spans []span } }
		}
		if err := json.Unmarshal(body, &got); err != nil || req.URL.Path != "/v1/traces" {
			http.Error(w, "no traces", http.StatusBadRequest)
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, resource := range got.ResourceSpans {
			for _, scope := range resource.ScopeSpans {
				r.spans = append(r.spans, scope.Spans...)
			}
		}
		r.text += string(body)
		r.tokens = append(r.tokens, req.Header.Get("Authorization"))
		r.arrived <- struct{}{}
	}))
	t.Cleanup(r.Close)
	return r
}

// traced waits for the trace of a first task with two commands, from its event to its final message, with its runs and
// their tool calls, and without what was said.
func (r *receiver) traced(t *testing.T) {
	t.Helper()
	ctx := await.Context(t)
	select {
	case <-r.arrived:
	case <-ctx.Done():
		t.Fatal("no trace arrived")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	byID, byName := map[string]span{}, map[string][]span{}
	for _, s := range r.spans {
		byID[s.SpanID], byName[s.Name] = s, append(byName[s.Name], s)
	}
	root := byName["task mention"]
	if len(root) != 1 {
		t.Fatalf("spans %v", r.spans)
	}
	var id string
	for _, a := range root[0].Attributes {
		if a.Key == "errand.task" {
			id = a.Value.StringValue
		}
	}
	want := fmt.Sprintf("%x", tasks.TraceID(id))
	for name, above := range map[string]string{
		"submit": "task mention", "wait": "task mention", "run": "task mention", "tool Bash": "run",
		"post": "task mention",
	} {
		for _, s := range byName[name] {
			if parent := byID[s.ParentSpanID]; parent.Name != above || s.EndTimeUnixNano < s.StartTimeUnixNano ||
				s.TraceID != want {
				t.Errorf("%s is below %s: %v", name, parent.Name, s)
			}
		}
		if len(byName[name]) == 0 {
			t.Errorf("no span %s", name)
		}
	}
	calls := byName["tool Bash"]
	if len(calls) != 2 || calls[0].Status == calls[1].Status {
		t.Errorf("calls %v", calls)
	}
	if strings.Contains(r.text, "cat total.go") || strings.Contains(r.text, "total right") {
		t.Errorf("a span has what was said: %s", r.text)
	}
	if r.tokens[0] != "Bearer otlp-token-for-tests" {
		t.Errorf("headers %q", r.tokens)
	}
}
