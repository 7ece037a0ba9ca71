package peers

import (
	"crypto/sha256"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/bearertokenauthextension"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/extension/extensiontest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/errand-fleet/errand/internal/fake/modelfake"
	"github.com/errand-fleet/errand/internal/fake/slackfake"
)

const collectorToken = "otlp-token-for-tests"

// The OpenTelemetry Collector receives one trace of a mention, from the event to the final message.
func TestCollector(t *testing.T) {
	t.Parallel()
	c := startCollector(t)
	if status := c.mention(t, collectorToken); status != http.StatusOK {
		t.Fatalf("the collector answered with %d", status)
	}
	spans := map[string]ptrace.Span{}
	for _, traces := range c.kept.AllTraces() {
		for _, resource := range traces.ResourceSpans().All() {
			if service, _ := resource.Resource().Attributes().Get("service.name"); service.AsString() != "errand" {
				t.Errorf("service %q", service.AsString())
			}
			for _, scope := range resource.ScopeSpans().All() {
				for _, s := range scope.Spans().All() {
					spans[s.SpanID().String()] = s
				}
			}
		}
	}
	var tree []string
	ids := map[string]bool{}
	for _, s := range spans {
		path := s.Name()
		at, found := spans[s.ParentSpanID().String()]
		for ; found; at, found = spans[at.ParentSpanID().String()] {
			path = at.Name() + " / " + path
		}
		tree, ids[s.TraceID().String()] = append(tree, path), true
		if task, is := s.Attributes().Get("errand.task"); is { // docs/operations.md says how the ID follows from it
			if sum := sha256.Sum256([]byte(task.Str())); s.TraceID() != pcommon.TraceID(sum[:16]) {
				t.Errorf("the trace of task %s is %s", task.Str(), s.TraceID())
			}
		}
	}
	slices.Sort(tree)
	want := []string{
		"task mention", "task mention / post", "task mention / run", "task mention / run / tool Bash",
		"task mention / submit", "task mention / wait",
	}
	if !slices.Equal(tree, want) || len(ids) != 1 {
		t.Errorf("spans %q of %d traces, want %q", tree, len(ids), want)
	}
}

// The collector refuses a wrong token, and keeps nothing of what came with it.
func TestCollectorRefusesToken(t *testing.T) {
	t.Parallel()
	c := startCollector(t)
	if status := c.mention(t, "another-token"); status != http.StatusUnauthorized || c.kept.SpanCount() != 0 {
		t.Errorf("the collector answered with %d and kept %d spans", status, c.kept.SpanCount())
	}
}

// collector has the Collector's own receiver of OTLP and its extension for tokens. They stand behind a proxy that knows
// what they answer.
type collector struct {
	url     string
	kept    *consumertest.TracesSink
	answers chan int // statuses
}

// extensions is what the receiver asks for the extension that its configuration names.
type extensions map[component.ID]component.Component

func (e extensions) GetExtensions() map[component.ID]component.Component { return e }

func startCollector(t *testing.T) *collector {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := free.Addr().String()
	_ = free.Close()
	c := &collector{kept: &consumertest.TracesSink{}, answers: make(chan int, 10)}
	auth := bearertokenauthextension.NewFactory()
	cfg := auth.CreateDefaultConfig()
	configure(t, cfg, map[string]any{"token": collectorToken})
	tokens, err := auth.Create(t.Context(), extensiontest.NewNopSettings(auth.Type()), cfg)
	if err != nil {
		t.Fatal(err)
	}
	otlp := otlpreceiver.NewFactory()
	cfg = otlp.CreateDefaultConfig()
	configure(t, cfg, map[string]any{"protocols": map[string]any{"http": map[string]any{
		"endpoint": addr, "auth": map[string]any{"authenticator": auth.Type().String()},
	}}})
	receiver, err := otlp.CreateTraces(t.Context(), receivertest.NewNopSettings(otlp.Type()), cfg, c.kept)
	if err != nil {
		t.Fatal(err)
	}
	host := extensions{component.NewID(auth.Type()): tokens}
	for _, part := range []component.Component{tokens, receiver} {
		if err := part.Start(limited(t), host); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = part.Shutdown(limited(t)) })
	}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: addr})
	proxy.ModifyResponse = func(r *http.Response) error {
		c.answers <- r.StatusCode
		return nil
	}
	front := httptest.NewServer(proxy)
	t.Cleanup(front.Close)
	c.url = front.URL
	return c
}

// configure reads a configuration as the Collector does.
func configure(t *testing.T, cfg component.Config, settings map[string]any) {
	t.Helper()
	if err := confmap.NewFromStringMap(settings).Unmarshal(cfg); err != nil {
		t.Fatal(err)
	}
}

// mention lets a whole errand, which has this token for the collector, answer a mention, and returns the collector's
// answer to the trace of it.
func (c *collector) mention(t *testing.T, token string) int {
	t.Helper()
	model, slack := modelfake.New(), slackfake.New(slackfake.Config{})
	t.Cleanup(model.Close)
	t.Cleanup(slack.Close)
	model.Answer("what is",
		modelfake.Turn{Tools: []modelfake.ToolCall{{Name: "Bash", Input: map[string]string{"command": "echo 42"}}}},
		modelfake.Turn{Text: "It is 42."})
	console := run(t, []string{
		"ERRAND_SANDBOX=none", "ERRAND_ALLOW_ROOT=true",
		"ERRAND_STATE_DIR=" + t.TempDir(), "ERRAND_HTTP_ADDR=127.0.0.1:0", "ERRAND_WORKER_ADDR=127.0.0.1:0",
		"ANTHROPIC_BASE_URL=" + model.URL(), "ANTHROPIC_API_KEY=sk-ant-peer-key", "SLACK_API_URL=" + slack.APIURL(),
		"SLACK_BOT_TOKEN=xoxb-test", "SLACK_SIGNING_SECRET=slack-secret",
		"OTEL_EXPORTER_OTLP_ENDPOINT=" + c.url, "OTEL_EXPORTER_OTLP_HEADERS=Authorization=Bearer%20" + token,
	}, "console", filepath.Join("..", "..", "bin", "worker"), "-standalone")
	base, _, _ := strings.Cut(console, "/login?")
	slack.Deliver(base + "/slack/events")
	if _, err := slack.Mention(t.Context(), slackfake.Message{
		Channel: channel, User: ann, Text: "what is the answer?",
	}); err != nil {
		t.Fatal(err)
	}
	select {
	case status := <-c.answers:
		return status
	case <-limited(t).Done():
		t.Fatal("no trace was sent")
	}
	return 0
}
