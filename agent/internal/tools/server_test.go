package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/errand-fleet/errand/agent/internal/redact"
)

// simple is a tool without arguments.
func simple(name string, run func(context.Context) (string, error)) Tool {
	return New(name, "A tool of the test.", func(ctx context.Context, _ struct{}) (string, error) { return run(ctx) })
}

// Both ways in which the CLI withdraws a call end its context, and nothing else.
func TestToolServerWithdrawal(t *testing.T) {
	t.Parallel()
	const call, cancelled = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"wait","arguments":{}}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`
	for name, withdraw := range map[string]func(*testing.T, *Server, context.CancelFunc){
		"question withdrawn": func(_ *testing.T, _ *Server, cancel context.CancelFunc) { cancel() },
		"request cancelled": func(t *testing.T, s *Server, _ context.CancelFunc) {
			if _, err := s.Answer(t.Context(), json.RawMessage(cancelled)); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				begun, heard := make(chan struct{}, 1), make(chan error, 1)
				s := Serve(t.Context(), []Tool{
					simple("wait", func(ctx context.Context) (string, error) {
						begun <- struct{}{}
						<-ctx.Done()
						heard <- context.Cause(ctx)
						return "too late", nil
					}),
					simple("now", func(context.Context) (string, error) { return "at once", nil }),
				}, nil, nil)
				initialize(t, s)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				answered := make(chan struct{})
				go func() {
					defer close(answered)
					_, _ = s.Answer(ctx, json.RawMessage(call))
				}()
				<-begun
				withdraw(t, s, cancel)
				if err := <-heard; !errors.Is(err, errWithdrawn) {
					t.Errorf("the tool received %v", err)
				}
				<-answered
				got, err := s.Answer(t.Context(),
					json.RawMessage(`{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"now"}}`))
				if line, _ := json.Marshal(got); err != nil || !strings.Contains(string(line), "at once") {
					t.Errorf("the next call: %s, %v", line, err)
				}
			})
		})
	}
}

// initialize does what the CLI does first. A notification is acknowledged at once.
func initialize(t *testing.T, s *Server) {
	t.Helper()
	for _, m := range []string{
		`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
	} {
		got, err := s.Answer(t.Context(), json.RawMessage(m))
		if line, _ := json.Marshal(got); err != nil || !strings.Contains(string(line), `"result":{`) {
			t.Fatalf("%s: %s, %v", m, line, err)
		}
	}
}

// Neither what a tool returns nor its error may show a secret to the agent.
func TestToolServerRedacts(t *testing.T) {
	t.Parallel()
	said := "the token is s3cret-value"
	s := Serve(t.Context(), []Tool{
		simple("result", func(context.Context) (string, error) { return said, nil }),
		simple("error", func(context.Context) (string, error) { return "", errors.New(said) }),
	}, redact.New("s3cret-value"), nil)
	initialize(t, s)
	for i, tool := range []string{"result", "error"} {
		got, err := s.Answer(t.Context(), json.RawMessage(fmt.Sprintf(
			`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":{}}}`, i+1, tool)))
		line, _ := json.Marshal(got)
		if err != nil || !strings.Contains(string(line), `"the token is [redacted]"`) {
			t.Errorf("%s: %s, %v", tool, line, err)
		}
	}
}

// Unknown requests should get an error, because the CLI waits for a response.
func TestToolServerOddMessages(t *testing.T) {
	t.Parallel()
	s := Serve(t.Context(), []Tool{simple("now", func(context.Context) (string, error) { return "", nil })}, nil, nil)
	for _, m := range []string{``, `{}`, `[]`, `{"jsonrpc":"2.0","id":1,"result":{}}`} {
		if got, err := s.Answer(t.Context(), json.RawMessage(m)); err == nil {
			t.Errorf("%s: %v", m, got)
		}
	}
	for m, want := range map[string]string{
		`"id":"a","method":"ping"`:                                                 `"id":"a","jsonrpc":"2.0","result":{}`,
		`"id":1,"method":"resources/list"`:                                         `"error":{"code":-32601,`,
		`"id":1,"method":"tools/call","params":[]`:                                 `"error":{"code":-32602,`,
		`"id":1,"method":"tools/call","params":{}`:                                 `"isError":true`,
		`"id":1,"method":"tools/call","params":{"name":"now","arguments":{"x":1}}`: `"isError":true`,
		`"id":1,"method":"tools/call","params":{"name":"now","arguments":[]}`:      `"isError":true`,
		`"method":"notifications/cancelled","params":{"requestId":9}`:              `"result":{}`,
	} {
		got, err := s.Answer(t.Context(), json.RawMessage(`{"jsonrpc":"2.0",`+m+`}`))
		if line, _ := json.Marshal(got); err != nil || !strings.Contains(string(line), want) {
			t.Errorf("%s: %s, %v", m, line, err)
		}
	}
}

// A second call with the ID of a call that has not ended is refused, and the first can still be withdrawn.
func TestToolServerRefusesAnIDInUse(t *testing.T) {
	t.Parallel()
	begun, over := make(chan struct{}), make(chan any)
	s := Serve(t.Context(), []Tool{simple("wait", func(ctx context.Context) (string, error) {
		close(begun)
		<-ctx.Done()
		return "", ctx.Err()
	})}, nil, nil)
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait"}}`
	go func() {
		got, _ := s.Answer(t.Context(), json.RawMessage(call))
		over <- got
	}()
	<-begun
	got, err := s.Answer(t.Context(), json.RawMessage(call))
	if line, _ := json.Marshal(got); err != nil || !strings.Contains(string(line), `"error":{"code":-32600,`) {
		t.Errorf("%s, %v", line, err)
	}
	withdrawal := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`
	if _, err := s.Answer(t.Context(), json.RawMessage(withdrawal)); err != nil {
		t.Error(err)
	}
	<-over
}

func TestNewRefusesWhatHasNoSchema(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	New("odd", "", func(context.Context, struct{ C chan int }) (string, error) { return "", nil })
}
