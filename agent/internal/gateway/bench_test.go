package gateway

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
)

// BenchmarkFirstByte is how long a question of 50 KB, the CLI's usual one, waits for the first byte of its answer, with
// and without a gateway between.
func BenchmarkFirstByte(b *testing.B) {
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, eventStream)
	}))
	defer model.Close()
	direct := &Gateway{url: model.URL}
	for name, g := range map[string]*Gateway{"direct": direct, "gateway": newGateway(b, model.URL, kinds["key"])} {
		b.Run(name, func(b *testing.B) {
			question := `{"model":"claude-opus-5-5","max_tokens":64,"system":"` + strings.Repeat("x", 50<<10) + `"}`
			b.ReportAllocs()
			for b.Loop() {
				res, err := http.DefaultTransport.RoundTrip(request(b, g, kinds["key"], "/v1/messages", question))
				if err != nil {
					b.Fatal(err)
				}
				if _, err := res.Body.Read(make([]byte, 1)); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				_, _ = io.Copy(io.Discard, res.Body)
				_ = res.Body.Close()
				b.StartTimer()
			}
		})
	}
}

// BenchmarkIdleGateway is what a gateway holds while its run asks nothing, its connection to the CLI included.
func BenchmarkIdleGateway(b *testing.B) {
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, eventStream) }))
	defer model.Close()
	held := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc + m.StackInuse
	}
	u := newUpstream(b, model.URL, kinds["key"])
	var gateways []*Gateway
	var conns []net.Conn
	before := held()
	for b.Loop() {
		g := startGateway(b, u)
		c, err := net.Dial("tcp", strings.TrimPrefix(g.url, "http://"))
		if err != nil {
			b.Fatal(err)
		}
		if err := request(b, g, kinds["key"], "/v1/messages", anyQuestion).Write(c); err != nil {
			b.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 4<<10)); err != nil {
			b.Fatal(err)
		}
		gateways, conns = append(gateways, g), append(conns, c)
	}
	b.ReportMetric(float64(held()-before)/float64(len(gateways)), "B/gateway")
	for i, g := range gateways {
		_ = conns[i].Close()
		g.Close()
	}
}
