package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	wire "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/errand-fleet/errand/internal/await"
	"github.com/errand-fleet/errand/internal/fake/modelfake"
	"github.com/errand-fleet/errand/tasks"
)

// receiver is an OTLP receiver over HTTP. It reads what it gets with OpenTelemetry's own types.
type receiver struct {
	*httptest.Server

	mu      sync.Mutex
	spans   []*wire.Span
	tokens  []string
	arrived chan struct{} // has a value for each request
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{arrived: make(chan struct{}, 100)}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		var got collector.ExportTraceServiceRequest
		if err := proto.Unmarshal(body, &got); err != nil || req.URL.Path != "/v1/traces" {
			http.Error(w, "no traces", http.StatusBadRequest)
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, resource := range got.GetResourceSpans() {
			for _, scope := range resource.GetScopeSpans() {
				r.spans = append(r.spans, scope.GetSpans()...)
			}
		}
		r.tokens = append(r.tokens, req.Header.Get("Authorization"))
		w.Header().Set("Content-Type", "application/x-protobuf")
		r.arrived <- struct{}{}
	}))
	t.Cleanup(r.Close)
	return r
}

// A task has one trace, from its event to its final message, with its runs and their tool calls, and without what was
// said.
func TestTraces(t *testing.T) {
	t.Parallel()
	w, r := newWorld(t), newReceiver(t)
	w.env["OTEL_EXPORTER_OTLP_ENDPOINT"], w.env["OTEL_EXPORTER_OTLP_HEADERS"] =
		r.URL, "Authorization=Bearer%20otlp-token-for-tests"
	w.model.Answer("total",
		modelfake.Turn{Tools: []modelfake.ToolCall{{
			Name: "Bash", Input: map[string]string{"command": "cat total.go"},
		}}},
		modelfake.Turn{Tools: []modelfake.ToolCall{{Name: "Bash", Input: map[string]string{"command": "exit 3"}}}},
		modelfake.Turn{Text: "It is fine."})
	w.standalone()
	w.answers(w.mention("is the total right?", ""), 1)
	ctx := await.Context(t)
	select {
	case <-r.arrived:
	case <-ctx.Done():
		t.Fatal("no trace arrived")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	byID, byName := map[string]*wire.Span{}, map[string][]*wire.Span{}
	for _, s := range r.spans {
		byID[string(s.GetSpanId())], byName[s.GetName()] = s, append(byName[s.GetName()], s)
	}
	root := byName["task mention"]
	if len(root) != 1 {
		t.Fatalf("spans %v", r.spans)
	}
	var id string
	for _, a := range root[0].GetAttributes() {
		if a.GetKey() == "errand.task" {
			id = a.GetValue().GetStringValue()
		}
	}
	want := tasks.TraceID(id)
	for name, above := range map[string]string{
		"submit": "task mention", "wait": "task mention", "run": "task mention", "tool Bash": "run",
		"post": "task mention",
	} {
		for _, s := range byName[name] {
			if parent := byID[string(s.GetParentSpanId())]; parent.GetName() != above ||
				s.GetEndTimeUnixNano() < s.GetStartTimeUnixNano() || string(s.GetTraceId()) != string(want[:]) {
				t.Errorf("%s is below %s: %v", name, parent.GetName(), s)
			}
		}
		if len(byName[name]) == 0 {
			t.Errorf("no span %s", name)
		}
	}
	calls := byName["tool Bash"]
	if len(calls) != 2 || calls[0].GetStatus().GetCode() == calls[1].GetStatus().GetCode() {
		t.Errorf("calls %v", calls)
	}
	for _, s := range r.spans {
		if text := s.String(); strings.Contains(text, "cat total.go") || strings.Contains(text, "total right") {
			t.Errorf("a span has what was said: %s", text)
		}
	}
	if r.tokens[0] != "Bearer otlp-token-for-tests" {
		t.Errorf("headers %q", r.tokens)
	}
}
