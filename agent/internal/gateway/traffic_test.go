package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	"github.com/google/go-cmp/cmp"
)

// eventStream is an answer as the API streams it: input tokens come first, output tokens at the end, each as the
// sum so far.
const eventStream = `event: message_start
data: {"type":"message_start","message":{"id":"m","usage":{"input_tokens":7,"cache_creation_input_tokens":5,"cache_read_input_tokens":3,"output_tokens":1}}}

event: content_block_delta
data: {"type":"content_block_delta","delta":{"text":"event: message_delta"},"usage":{"output_tokens":99}}

event: message_delta
data: {"type":"message_delta","usage":{"output_tokens":20}}

event: message_delta
data: {"type":"message_delta","usage":{"input_tokens":8,"output_tokens":40}}

event: message_stop
data: {"type":"message_stop"}

`

// framed returns server-sent events in the frames of Bedrock, by AWS' own encoder.
func framed(t *testing.T, events string) string {
	t.Helper()
	var b bytes.Buffer
	for line := range strings.Lines(events) {
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
		payload, err := json.Marshal(map[string][]byte{"bytes": []byte(strings.TrimSpace(data))})
		if err != nil {
			t.Fatal(err)
		}
		headers := eventstream.Headers{
			{Name: ":event-type", Value: eventstream.StringValue("chunk")},
			{Name: ":message-type", Value: eventstream.StringValue("event")},
		}
		if err := eventstream.NewEncoder().Encode(&b,
			eventstream.Message{Headers: headers, Payload: payload}); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// exceptionFrame returns an error as Bedrock sends it in an answer with status 200.
func exceptionFrame(t *testing.T, kind, message string) string {
	t.Helper()
	var b bytes.Buffer
	err := eventstream.NewEncoder().Encode(&b, eventstream.Message{
		Headers: eventstream.Headers{
			{Name: ":exception-type", Value: eventstream.StringValue("throttlingException")},
			{Name: ":content-type", Value: eventstream.StringValue("application/json")},
			{Name: ":message-type", Value: eventstream.StringValue(kind)},
		},
		Payload: []byte(message),
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestMeterCountsTokens(t *testing.T) {
	t.Parallel()
	all := Usage{Input: 8, Output: 40, CacheRead: 3, CacheCreation: 5}
	long := "event: message_start\ndata: {\"x\":\"" + strings.Repeat("x", 2*maxEvent) +
		"\",\"usage\":{\"output_tokens\":1}}\n\n"
	for name, c := range map[string]struct {
		kind, body string
		header     http.Header
		status     int
		want       Usage
	}{
		"stream": {kind: "text/event-stream; charset=utf-8", body: eventStream, want: all},
		"crlf":   {kind: "text/event-stream", body: strings.ReplaceAll(eventStream, "\n", "\r\n"), want: all},
		"cut": {
			kind: "text/event-stream", body: eventStream[:len(eventStream)/2],
			want: Usage{Input: 7, Output: 1, CacheRead: 3, CacheCreation: 5},
		},
		"long line": {kind: "text/event-stream", body: long + eventStream, want: all},
		"whole": {
			kind: "application/json",
			body: `{"type":"message","content":[],"usage":{"input_tokens":8,"output_tokens":40,"cache_read_input_tokens":3,"cache_creation_input_tokens":5,"service_tier":"x"}}`, want: all,
		},
		"large": {kind: "application/json", body: `{"usage":{"output_tokens":40},"x":"` +
			strings.Repeat("x", 2*maxBody) + `"}`},
		"no usage": {kind: "application/json", body: `{"usage":null}`},
		"not JSON": {kind: "application/json", body: `{"usage":{"output_`},
		"an error": {
			kind: "application/json", body: `{"usage":{"output_tokens":40}}`, status: http.StatusBadRequest,
		},
		"other kind": {kind: "text/plain", body: eventStream},
		"compressed": {
			kind: "text/event-stream", body: eventStream, header: http.Header{"Content-Encoding": {"gzip"}},
		},
		"frames": {kind: frameType, body: framed(t, eventStream), want: all},
		"cut frames": {
			kind: frameType, body: framed(t, eventStream)[:500], want: Usage{
				Input: 7, Output: 1, CacheRead: 3, CacheCreation: 5,
			},
		},
		"long frame": {kind: frameType, body: framed(t, long+eventStream), want: all},
		"no frames":  {kind: frameType, body: eventStream},
		"odd numbers": {
			kind: "text/event-stream",
			body: "event: message_start\ndata: {\"message\":{\"usage\":{\"output_tokens\":\"many\"}}}\n\n" +
				eventStream, want: all,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for how, read := range map[string]func(io.Reader) io.Reader{
				"at once": func(r io.Reader) io.Reader { return r }, "byte by byte": iotest.OneByteReader,
				"with the end": iotest.DataErrReader,
			} {
				if len(c.body) > 1<<20 && how != "at once" {
					continue
				}
				res := &http.Response{
					StatusCode: c.status, Header: http.Header{"Content-Type": {c.kind}},
					Body: io.NopCloser(read(strings.NewReader(c.body))),
				}
				if c.status == 0 {
					res.StatusCode = http.StatusOK
				}
				maps.Copy(res.Header, c.header)
				var sum Usage
				begun := 0
				m := newMeter(res, func() { begun++ }, func(b Bill, _ string, _ bool) { sum = b.Usage })
				passed, err := io.ReadAll(m)
				if err != nil || string(passed) != c.body || begun != 1 {
					t.Errorf("%s: %d of %d bytes passed, started %d times, %v", how, len(passed),
						len(c.body), begun, err)
				}
				if diff := cmp.Diff(c.want, sum); diff != "" {
					t.Errorf("%s: %s", how, diff)
				}
				if cap(m.line) > 2*max(m.limit, 512) {
					t.Errorf("%s: holds %d bytes", how, cap(m.line))
				}
			}
		})
	}
}

func FuzzMeter(f *testing.F) {
	f.Add([]byte(eventStream), 10)
	f.Fuzz(func(t *testing.T, body []byte, n int) {
		res := &http.Response{
			StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}},
			Body: io.NopCloser(bytes.NewReader(body)),
		}
		got, err := io.ReadAll(newMeter(res, func() {}, func(Bill, string, bool) {}))
		if err != nil || !bytes.Equal(got, body) {
			t.Errorf("%q passed as %q, %v", body, got, err)
		}
	})
}

func TestTrafficIsCounted(t *testing.T) {
	t.Parallel()
	answers := []func(http.ResponseWriter){
		func(w http.ResponseWriter) {
			w.Header().Set("Anthropic-Ratelimit-Requests-Remaining", "7")
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, eventStream)
		},
		func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(http.StatusTooManyRequests)
		},
		func(w http.ResponseWriter) { _, _ = io.WriteString(w, `{"input_tokens":1000}`) }, // of count_tokens
		func(w http.ResponseWriter) {
			w.Header().Set("Anthropic-Ratelimit-Tokens-Reset", "2026-01-01T00:00:00Z")
			w.WriteHeader(http.StatusTooManyRequests)
		},
		func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"usage":{"input_tokens":1}}`)
		},
	}
	var n int
	model := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		n++
		answers[n-1](w)
	})
	g := newGateway(t, model.URL, kinds["key"])
	used := Usage{Input: 8, Output: 40, CacheRead: 3, CacheCreation: 5}
	requests, tokens := map[string]string{"requests-remaining": "7"},
		map[string]string{"tokens-reset": "2026-01-01T00:00:00Z"}
	for i, want := range []API{
		{Calls: 1, Usage: used, Status: 200, Limits: requests},
		{
			Calls: 2, Usage: used, Status: 429, Limits: requests, Errors: map[int]int{429: 1},
			RetryAt: time.Now().Add(time.Hour),
		},
		{
			Calls: 2, Usage: used, Status: 429, Limits: requests, Errors: map[int]int{429: 1},
			RetryAt: time.Now().Add(time.Hour),
		},
		{Calls: 3, Usage: used, Status: 429, Limits: tokens, Errors: map[int]int{429: 2}},
		{Calls: 4, Usage: used.Plus(Usage{Input: 1}), Status: 200, Limits: tokens, Errors: map[int]int{429: 2}},
	} {
		path := "/v1/messages"
		if i == 2 {
			path += "/count_tokens"
		}
		answerTo(t, request(t, g, kinds["key"], path, anyQuestion))
		got := *g.Seen()
		if late := got.RetryAt.Sub(want.RetryAt); late < 0 || late > time.Minute {
			t.Errorf("after %d answers: retry at %v, want %v", i+1, got.RetryAt, want.RetryAt)
		}
		got.CostUSD, got.RetryAt, want.RetryAt = 0, time.Time{}, time.Time{}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("after %d answers: %s", i+1, diff)
		}
	}
}

// Providers charge nothing for an error instead of an answer. Otherwise an answer that ends early is charged with an
// estimate.
func TestErrorInsteadOfAnAnswerIsFree(t *testing.T) {
	t.Parallel()
	const failed = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n\n"
	const ping = "event: ping\ndata: {\"type\":\"ping\"}\n\n"
	begun, _, _ := strings.Cut(eventStream, "event: content_block_delta")
	long := "event: message_start\ndata: {\"x\":\"" + strings.Repeat("x", 2*maxEvent) + "\"}\n\n"
	const busy = `{"message":"Too many requests, please wait before trying again."}`
	exception, unknown := exceptionFrame(t, "exception", busy), exceptionFrame(t, "error", busy)
	for name, c := range map[string]struct {
		kind, body string
		free       bool
		input      int64 // 0: estimated
	}{
		"error":                   {kind: "text/event-stream", body: failed, free: true},
		"error after ping":        {kind: "text/event-stream", body: ping + failed, free: true},
		"error after usage":       {kind: "text/event-stream", body: begun + failed, input: 7},
		"error after long line":   {kind: "text/event-stream", body: long + failed},
		"ping":                    {kind: "text/event-stream", body: ping},
		"nothing":                 {kind: "text/event-stream"},
		"half an error":           {kind: "text/event-stream", body: failed[:8]},
		"exception":               {kind: frameType, body: exception, free: true},
		"unknown exception":       {kind: frameType, body: unknown, free: true},
		"exception without words": {kind: frameType, body: exceptionFrame(t, "exception", ""), free: true},
		"error in a frame":        {kind: frameType, body: framed(t, failed), free: true},
		"exception after usage":   {kind: frameType, body: framed(t, begun) + exception, input: 7},
		"exception after long":    {kind: frameType, body: framed(t, long) + exception},
		"exception after no JSON": {kind: frameType, body: framed(t, "data: x\n") + exception},
		"half an exception":       {kind: frameType, body: exception[:len(exception)-1]},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", c.kind)
				_, _ = io.WriteString(w, c.body)
			})
			g := newGateway(t, model.URL, kinds["key"])
			answerTo(t, request(t, g, kinds["key"], "/v1/messages", anyQuestion))
			api := g.Seen()
			if c.free != (api.CostUSD == 0) || c.free && api.Usage != (Usage{}) ||
				c.input > 0 && api.Usage.Input != c.input {
				t.Errorf("$%g, %+v; free should be %t", api.CostUSD, api.Usage, c.free)
			}
		})
	}
}

// The asker sees the end of an answer after the call was charged. Otherwise it could ask again before the gateway knows
// that the maximum is spent.
func TestAnswerEndsAfterItsCharge(t *testing.T) {
	t.Parallel()
	model := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"usage":{"input_tokens":1,"output_tokens":1}}`) // with its length
	})
	g := newGateway(t, model.URL, kinds["key"])
	res := unread(t, g)
	defer res.Body.Close()
	_, err := io.Copy(io.Discard, res.Body)
	if usd := g.Seen().CostUSD; err != nil || usd == 0 || res.ContentLength >= 0 {
		t.Errorf("$%g are charged at the end of an answer of %d bytes, %v", usd, res.ContentLength, err)
	}
}

// A call that is not answered yet, or that the CLI gives up before it is, says nothing of whether the model can be
// reached.
func TestUnansweredIsNotUnreachable(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{})
	model := serve(t, func(_ http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		close(asked)
		<-req.Context().Done()
	})
	g := newGateway(t, model.URL, kinds["key"])
	silent := func(when string) {
		t.Helper()
		api := g.Seen()
		if api.Calls != 1 || api.Throttled() || api.Unreachable() || g.Trouble() != "" {
			t.Errorf("%s: %+v, %q", when, api, g.Trouble())
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	gaveUp := make(chan struct{})
	go func() {
		defer close(gaveUp)
		answerTo(t, request(t, g, kinds["key"], "/v1/messages", anyQuestion).WithContext(ctx))
	}()
	<-asked
	silent("under way")
	cancel()
	<-gaveUp
	g.Close()
	silent("given up")
}

// The reservation of a call should cover its estimated tokens at every price.
func TestEstimateCoversTheHighestPrice(t *testing.T) {
	t.Parallel()
	const tokens, answer = 150_000, 1000
	hour := Bill{Usage: Usage{CacheCreation: tokens, Output: answer}, Geo: "us"}
	hour.Cache.Hour = tokens
	for model := range Prices {
		c := call{
			traffic: &traffic{}, question: question{Model: model, MaxTokens: answer}, size: bytesPerToken * tokens,
		}
		p, _ := PriceList(nil).Of(model)
		for name, b := range map[string]Bill{
			"plain":              {Usage: Usage{Input: tokens, Output: answer}},
			"cached for 5 min":   {Usage: Usage{CacheCreation: tokens, Output: answer}, Geo: "us"},
			"cached for an hour": hour,
		} {
			if usd := p.Cost(b); usd > c.estimate() {
				t.Errorf("%s, %s: $%g, reserved $%g", model, name, usd, c.estimate())
			}
		}
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for value, want := range map[string]time.Time{
		"0":                             now,
		"3600":                          now.Add(time.Hour),
		"Fri, 02 Jan 2026 04:04:05 GMT": now.Add(time.Hour),
		"":                              {},
		"-1":                            {},
		"soon":                          {},
		"99999999999999999999":          {},
	} {
		if got := retryAfter(http.Header{"Retry-After": {value}}, now); !got.Equal(want) {
			t.Errorf("%q: %v, want %v", value, got, want)
		}
	}
}

// The gateways reach the model as the CLI would have: through the proxy, and trusting what it trusts.
func TestUpstreamFollowsTheEnvironment(t *testing.T) {
	t.Parallel()
	t.Run("proxy", func(t *testing.T) {
		t.Parallel()
		proxy := serve(t, func(w http.ResponseWriter, req *http.Request) {
			_, _ = io.WriteString(w, "by proxy to "+req.RequestURI)
		})
		inside := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "directly")
		})
		for upstream, want := range map[string]string{"http://model.test/x": "by proxy to http://model.test/x/v1/messages", inside.URL: "directly"} {
			env := map[string]string{"http_proxy": proxy.URL, "NO_PROXY": "127.0.0.1"}
			g := newGateway(t, upstream, kinds["key"], func(u *Upstream) {
				u.keys.keys[0].transport, _ = NewTransport(func(name string) string { return env[name] })
			})
			if status, text := answerTo(t, request(t, g, kinds["key"], "/v1/messages", anyQuestion)); status != http.StatusOK || text != want {
				t.Errorf("%s: %d %q, want %q", upstream, status, text, want)
			}
		}
	})
	t.Run("certificates", func(t *testing.T) {
		t.Parallel()
		model := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { _, _ = io.WriteString(w, req.Proto) }))
		model.EnableHTTP2 = true
		model.StartTLS()
		defer model.Close()
		file := filepath.Join(t.TempDir(), "ca.pem")
		if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: model.Certificate().Raw}), 0o600); err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]string{file: "HTTP/2.0", "": ""} {
			transport, err := NewTransport(func(v string) string { return map[string]string{"NODE_EXTRA_CA_CERTS": name}[v] })
			if err != nil {
				t.Fatal(err)
			}
			g := newGateway(t, model.URL, kinds["key"], func(u *Upstream) { u.keys.keys[0].transport = transport })
			status, text := answerTo(t, request(t, g, kinds["key"], "/v1/messages", anyQuestion))
			if want != "" && text != want || want == "" && (status != 0 || !strings.Contains(g.Seen().Problem, "certificate")) {
				t.Errorf("with %q: %d %q, %+v", name, status, text, g.Seen())
			}
			transport.CloseIdleConnections()
		}
		for _, bad := range []string{filepath.Join(t.TempDir(), "none"), "/dev/null"} {
			if transport, err := NewTransport(func(v string) string { return map[string]string{"NODE_EXTRA_CA_CERTS": bad}[v] }); err == nil || transport == nil {
				t.Errorf("%s: %v, %v; want an error, and a transport without it", bad, transport, err)
			}
		}
	})
}
