package traces

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// What follows is a request of OTLP over HTTP in its JSON encoding, as far as errand uses it.

type object = map[string]any

// span is an operation.
type span struct {
	TraceID    string   `json:"traceId"` // IDs are hexadecimal
	ID         string   `json:"spanId"`
	Parent     string   `json:"parentSpanId,omitempty"`
	Name       string   `json:"name"`
	Kind       int      `json:"kind"`
	Start      int64    `json:"startTimeUnixNano,string"`
	End        int64    `json:"endTimeUnixNano,string"`
	Attributes []object `json:"attributes,omitempty"`
	Events     []object `json:"events,omitempty"`
	Status     object   `json:"status,omitempty"`
}

// failed returns the status of a span that failed.
func failed(why string) object { return object{"code": 2, "message": why} }

// attribute returns an attribute whose value is a string, an int or a float64.
func attribute(key string, v any) object {
	kind := "stringValue"
	switch n := v.(type) {
	case int:
		kind, v = "intValue", strconv.Itoa(n)
	case float64:
		kind = "doubleValue"
	}
	return object{"key": key, "value": object{kind: v}}
}

// post sends spans. It tries again until ctx ends if that can help.
func (e *Exporter) post(ctx context.Context, spans []*span) error {
	about := []object{attribute("service.name", "errand"), attribute("service.version", e.cfg.Version)}
	body, err := json.Marshal(object{"resourceSpans": []object{{
		"resource":   object{"attributes": about},
		"scopeSpans": []object{{"scope": object{"name": "errand"}, "spans": spans}},
	}}})
	if err != nil {
		return fmt.Errorf("marshal trace: %w", err)
	}
	for pause := time.Second; ; pause *= 2 {
		again, err := e.try(ctx, body)
		if !again {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return err
		}
	}
}

// try sends a request once.
func (e *Exporter) try(ctx context.Context, body []byte) (again bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.cfg.URL, bytes.NewReader(body))
	if err != nil {
		return false, fmt.Errorf("send trace: %w", err)
	}
	for name, value := range e.cfg.Headers {
		req.Header.Set(name, value)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return ctx.Err() == nil, fmt.Errorf("send trace: %w", err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // so that the connection is used again
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		again = true
	}
	if resp.StatusCode >= http.StatusMultipleChoices {
		err = fmt.Errorf("send trace: the receiver answered %s", resp.Status)
	}
	return again, err
}
