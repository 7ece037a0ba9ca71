package web

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/web/auth"
	"github.com/errand-fleet/errand/web/logs"
)

// The tool log of the MCP server transfers only the end of a log from another worker.
func TestToolReadsOnlyTheEndOfALog(t *testing.T) {
	t.Parallel()
	h := newHarness(t, asksWorkers)
	id := h.submit(1)
	h.Claim(id) // by worker-1
	var sent atomic.Int64
	m := &machine{dir: t.TempDir()}
	worker := logs.Server(m.dir, fleetToken)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := httptest.NewRecorder()
		worker.ServeHTTP(rec, r)
		maps.Copy(w.Header(), rec.Header())
		sent.Store(int64(rec.Body.Len()))
		w.WriteHeader(rec.Code)
		_, _ = rec.Body.WriteTo(w)
	}))
	t.Cleanup(s.Close)
	if _, err := h.Store.Workers.Beat(t.Context(), store.Worker{
		ID: "worker-1", Host: hostname(h), URL: s.URL,
	}); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		log, want string
		bytes     int
		cut       bool
	}{
		{"0123456789", "6789", 4, true},
		{"0123456789", "0123456789", 10, false},
		{"0123456789", "0123456789", 100, false},
		{"", "", 4, false},
	} {
		m.log(t, id+".log", tc.log)
		a := h.do(http.MethodPost, auth.MCPPath,
			fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"log","arguments":{"task":%q,"bytes":%d}}}`, id, tc.bytes),
			"Content-Type", "application/json", "Accept", "application/json, text/event-stream")
		var got struct {
			Result struct {
				StructuredContent struct {
					Log string
					Cut bool
				}
				IsError bool
			}
		}
		err := json.Unmarshal([]byte(a.text), &got)
		if end := got.Result.StructuredContent; err != nil || got.Result.IsError || end.Log != tc.want ||
			end.Cut != tc.cut || sent.Load() != int64(len(tc.want)) {
			t.Errorf("%d bytes of %q: %s, %d bytes transferred, %v", tc.bytes, tc.log, a.text, sent.Load(), err)
		}
	}
}
