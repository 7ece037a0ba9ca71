package gateway

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// usualQuestion has the CLI's usual size.
var usualQuestion = `{"model":"claude-opus-5-5","max_tokens":64,"system":"` + strings.Repeat("x", 50<<10) + `"}`

// answering is a model that answers at once. It refuses the key of a credential that is held.
func answering(b *testing.B) string {
	b.Helper()
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		if req.Header.Get("X-Api-Key") == "key-held" {
			limited(time.Now().Add(time.Hour))(w, req)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, eventStream)
	}))
	b.Cleanup(model.Close)
	return model.URL
}

// firstByte asks a question and returns the time to the first byte of its answer, which it reads to the end.
func firstByte(req *http.Request) (time.Duration, error) {
	begun := time.Now()
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	_, err = res.Body.Read(make([]byte, 1))
	took := time.Since(begun)
	_, _ = io.Copy(io.Discard, res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = errors.New(res.Status)
	}
	return took, err
}

// timed adds the time to the first byte of an answer to a list.
func timed(b *testing.B, times []time.Duration, g *Gateway) []time.Duration {
	b.Helper()
	took, err := firstByte(request(b, g, kinds["key"], messagesPath, usualQuestion))
	if err != nil {
		b.Fatal(err)
	}
	return append(times, took)
}

// quantile returns one of times, in microseconds.
func quantile(times []time.Duration, share float64) float64 {
	slices.Sort(times)
	return float64(times[min(len(times)-1, int(share*float64(len(times))))].Nanoseconds()) / 1000
}

// BenchmarkFirstByte is how long a question waits for the first byte of its answer, with and without a gateway between.
// They take turns.
func BenchmarkFirstByte(b *testing.B) {
	url := answering(b)
	direct, g := &Gateway{url: url}, newGateway(b, url, kinds["key"])
	var without, with []time.Duration
	for b.Loop() {
		without, with = timed(b, without, direct), timed(b, with, g)
	}
	for share, name := range map[float64]string{0.5: "p50", 0.99: "p99"} {
		b.ReportMetric(quantile(with, share)-quantile(without, share), "added-µs-"+name)
	}
}

// BenchmarkHeldCredential compares the first byte in runs with two credentials, one of which is held, with that in runs
// with one good credential. Each iteration is a run of each kind, with three questions, and no question may fail.
func BenchmarkHeldCredential(b *testing.B) {
	url := answering(b)
	var times [2][]time.Duration
	var ways [2]*Upstream
	for i, credentials := range [][]Named{{apiKey("good")}, {apiKey("held"), apiKey("good")}} {
		u := upstream(b, Config{
			BaseURL: url, Credentials: credentials,
		})
		ways[i] = u
	}
	for b.Loop() {
		for i, u := range ways {
			g, err := u.Open(Run{Note: func(string, ...any) {}}) // without a clean-up, which would keep all of them
			if err != nil {
				b.Fatal(err)
			}
			for range 3 {
				times[i] = timed(b, times[i], g)
			}
			g.Close()
		}
	}
	for share, name := range map[float64]string{0.5: "p50", 0.99: "p99"} {
		b.ReportMetric(quantile(times[1], share)/quantile(times[0], share), "ratio-"+name)
	}
	b.ReportMetric(quantile(times[0], 0.99), "good-µs-p99")
}

// BenchmarkStreamCPU is the part of a core that a gateway needs while an answer streams: 80 events of 200 bytes a
// second, for one of 50 runs. It is the difference to the same without a gateway.
func BenchmarkStreamCPU(b *testing.B) {
	const streams, events = 50, 400
	line := "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"text\":\"" +
		strings.Repeat("x", 100) + "\"}}\n\n"
	model := serve(b, func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		tick := time.NewTicker(time.Second / tokensPerSecond)
		defer tick.Stop()
		for range events {
			<-tick.C
			_, _ = io.WriteString(w, line)
			_ = http.NewResponseController(w).Flush()
		}
	})
	direct, u := &Gateway{url: model.URL}, upstream(b, Config{BaseURL: model.URL, Credentials: []Named{{Credential: kinds["key"]}}})
	used := func(gateway func() *Gateway) time.Duration {
		before := processTime(b)
		var all sync.WaitGroup
		for range streams {
			req := request(b, gateway(), kinds["key"], messagesPath, usualQuestion)
			all.Go(func() {
				if _, err := firstByte(req); err != nil {
					b.Error(err)
				}
			})
		}
		all.Wait()
		return processTime(b) - before
	}
	var more time.Duration
	for b.Loop() {
		without := used(func() *Gateway { return direct })
		more += used(func() *Gateway { return open(b, u) }) - without
	}
	b.ReportMetric(100*more.Seconds()/float64(b.N)/streams/(events/tokensPerSecond), "%core/stream")
}

// processTime returns the CPU time of this process.
func processTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
