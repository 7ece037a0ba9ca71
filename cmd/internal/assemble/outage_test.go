package assemble

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/errand-fleet/errand/internal/testlog"
)

// refusal is an error that Redis replies.
type refusal string

func (r refusal) Error() string { return string(r) }
func (refusal) RedisError()     {}

// An outage is logged when it begins and when it has been over for a while. In between each message of a loop is logged
// once a minute, those about runs always.
func TestOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var text testlog.Log
		log := slog.New(slog.NewTextHandler(&text, nil))
		p := &Parts{Log: log}
		p.connections.outage = &outage{log: log, explain: p.explain}
		o, loops := p.connections.outage, p.calmLog().With("worker", "w")
		expect := func(when string, counts map[string]int) {
			t.Helper()
			for words, n := range counts {
				if got := strings.Count(text.String(), words); got != n {
					t.Errorf("%s: %d times %q, want %d:\n%s", when, got, words, n, text.String())
				}
			}
		}
		round := func(err error) {
			o.completed(err, false)
			loops.Warn("beat", "err", err)
			loops.Warn("renew claim", "run", "1-x")
			loops.With("run", "2-x").Error("save checkpoint")
			loops.Info("worker started")
			p.connections.ReportResult(nil) // of a read
			time.Sleep(time.Second)         //nolint:forbidigo // of the bubble's clock
		}
		for range 3 {
			round(redis.Nil)
			round(context.Canceled)
			round(refusal("WRONGTYPE not a list"))
			o.completed(context.DeadlineExceeded, true)
		}
		expect("without an outage", map[string]int{"does not answer": 0, "beat": 9, "works again": 0})
		for range 90 {
			round(io.EOF)
		}
		expect("in an outage", map[string]int{
			"redis does not answer": 2, "beat": 9 + 2, "skipped=59": 1, "renew claim": 9 + 90,
			"save checkpoint": 9 + 90, "worker started": 9 + 90, "works again": 0,
		})
		round(refusal("OOM command not allowed"))
		round(refusal("LOADING Redis is loading"))
		expect("then", map[string]int{
			"redis refuses writes": 1, "why=\"Redis is loading its data\"": 1, "works again": 0,
		})
		for range 22 {
			round(nil)
		}
		expect("afterwards", map[string]int{"msg=\"redis works again\" dur=1m31s failures=92": 1, "works again": 1})
		round(errors.New("dial tcp: connection refused"))
		expect("in the next", map[string]int{"redis does not answer": 3 + 1})
		for range 6 { // of a front door whose probes try to write
			round(refusal("EXECABORT Transaction discarded because of previous errors."))
			for range 14 {
				round(nil)
			}
		}
		expect("between probes", map[string]int{"works again": 1, "redis refuses writes": 1 + 2})
	})
}

// A Redis that is unreachable for a while is logged by two lines, however often it is asked.
func TestOutageOfRedis(t *testing.T) {
	t.Parallel()
	b := &broken{T: t, settings: map[string]string{}}
	b.start(false)
	p, text := secureParts(t, b.settings)
	repair := faults["it is unreachable"].fail(b)
	for range 5 {
		if err := p.Redis.Ping(t.Context()).Err(); err == nil {
			t.Fatal("Redis answers")
		}
		if _, err := p.door.Pipelined(t.Context(), func(pipe redis.Pipeliner) error {
			return pipe.Ping(t.Context()).Err()
		}); err == nil {
			t.Fatal("Redis answers a pipeline")
		}
	}
	if n := strings.Count(text.String(), "redis does not answer"); n != 1 {
		t.Errorf("%d lines during the outage:\n%s", n, text.String())
	}
	repair()
	for !strings.Contains(text.String(), `msg="redis works again"`) {
		o := p.connections.outage
		o.mu.Lock()
		o.last = time.Now().Add(-outageOver)
		o.mu.Unlock()
		if _ = p.Redis.Ping(t.Context()).Err(); t.Context().Err() != nil {
			t.Fatal("the end is not logged")
		}
	}
	if n := strings.Count(text.String(), "redis does not answer"); n != 1 {
		t.Errorf("%d lines in all:\n%s", n, text.String())
	}
}

// A request that had no time left says nothing about Redis.
func TestLateRequestIsNoOutage(t *testing.T) {
	t.Parallel()
	b := &broken{T: t, settings: map[string]string{}}
	b.start(false)
	p, text := secureParts(t, b.settings)
	ctx, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	_, err := p.Redis.Pipelined(ctx, func(pipe redis.Pipeliner) error { return pipe.Ping(ctx).Err() })
	if err == nil || p.Redis.Ping(ctx).Err() == nil {
		t.Fatal("Redis answers")
	}
	if strings.Contains(text.String(), "redis does not answer") {
		t.Errorf("it logs:\n%s", text.String())
	}
}
