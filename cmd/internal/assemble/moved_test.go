package assemble

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/errand-fleet/errand/config"
	"github.com/errand-fleet/errand/internal/redisserver/redistest"
)

// address is the address of a hosted Redis: new connections lead to where it was moved to, old ones stay.
type address struct {
	net.Listener
	target atomic.Value
}

func newAddress(t *testing.T, target string) *address {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a := &address{Listener: l}
	a.target.Store(target)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := new(net.Dialer).DialContext(t.Context(), "tcp", a.target.Load().(string))
			if err != nil {
				_ = in.Close()
				continue
			}
			for _, way := range [][2]net.Conn{{in, out}, {out, in}} {
				go func() {
					_, _ = io.Copy(way[0], way[1])
					_, _ = way[0].Close(), way[1].Close()
				}()
			}
		}
	}()
	return a
}

// A hosted Redis fails over behind its address, and the connections to the demoted master stay open. It refuses writes,
// and its subscribers hear nothing. A process leaves it with all connections, also if it only reads.
func TestAddressMoves(t *testing.T) {
	t.Parallel()
	for name, notice := range map[string]func(p *Parts) error{
		"write": func(p *Parts) error { return p.Redis.Set(t.Context(), "errand:x", 1, 0).Err() },
		"pipeline": func(p *Parts) error {
			_, err := p.door.Pipelined(t.Context(), func(pipe redis.Pipeliner) error {
				pipe.Exists(t.Context(), "errand:y")
				return pipe.Set(t.Context(), "errand:x", 1, 0).Err()
			})
			return err
		},
		"probe": func(p *Parts) error { return p.Ready(t.Context()) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			old, promoted := parse(t, redistest.Start(t)), parse(t, redistest.Start(t))
			if err := promoted.ConfigSet(t.Context(), "requirepass", old.Options().Password).Err(); err != nil {
				t.Fatal(err)
			}
			a := newAddress(t, old.Options().Addr)
			u := url.URL{Scheme: "redis", Host: a.Addr().String(), User: url.UserPassword("", old.Options().Password)}
			p, err := New(config.Config{Redis: config.Redis{URL: config.RedisURL(u.String())}},
				slog.New(slog.DiscardHandler), Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = p.Close() })
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			listening := p.Redis.Subscribe(ctx, "asynq:cancel")
			defer listening.Close()
			heard := listening.Channel()
			silent := p.blocking.Subscribe(ctx, "errand:news")
			defer silent.Close()
			news := silent.Channel()
			say := func(r *redis.Client) {
				t.Helper()
				for _, channel := range []string{"asynq:cancel", "errand:news"} {
					for n := int64(0); n == 0; n = r.Publish(t.Context(), channel, "x").Val() {
						if t.Context().Err() != nil {
							t.Fatal("nobody subscribes to " + channel)
						}
					}
				}
				<-heard
				<-news
			}
			say(old)
			for _, c := range []*redis.Client{p.Redis, p.blocking, p.door} {
				if _, err := c.Pipelined(t.Context(), func(pipe redis.Pipeliner) error {
					return pipe.Ping(t.Context()).Err()
				}); err != nil {
					t.Fatal(err)
				}
				if err := c.Ping(t.Context()).Err(); err != nil {
					t.Fatal(err)
				}
			}
			p.connections.age()

			if err := old.Do(t.Context(), "REPLICAOF", "127.0.0.1", "1").Err(); err != nil {
				t.Fatal(err)
			}
			a.target.Store(promoted.Options().Addr)
			_ = notice(p) // may fail once
			if err := notice(p); err != nil {
				t.Errorf("the second time: %v", err)
			}
			say(promoted)
			for _, c := range []*redis.Client{p.Redis, p.blocking, p.door} {
				if info := c.Info(t.Context(), "replication").Val(); !strings.Contains(info, "role:master") {
					t.Errorf("reads from %s", info)
				}
			}
		})
	}
}

// age lets all connections be as old as it takes to be closed.
func (l *connections) age() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.open {
		l.open[c] = time.Now().Add(-settles)
	}
}

func parse(t *testing.T, url string) *redis.Client {
	t.Helper()
	return redistest.Client(t, url)
}
