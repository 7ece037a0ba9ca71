package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"sync"
	"sync/atomic"

	"github.com/errand-fleet/errand/bench/door"
)

// rounds counts each contender's round trips to Redis for one event.
func (b *bench) rounds(ctx context.Context) error {
	list, err := b.contenders()
	if err != nil {
		return err
	}
	for _, c := range list {
		n, err := b.count(ctx, c)
		if err != nil {
			return err
		}
		if c.Name == ownName {
			b.report.Most("round trips to Redis for an event, until it is a task", n, 10, "%.2f")
		} else {
			b.report.Note("the same of "+c.Name, n, "%.2f")
		}
	}
	return nil
}

// count sends events one after the other to a contender that reaches Redis through a proxy.
func (b *bench) count(ctx context.Context, c contender) (_ float64, err error) {
	to, err := url.Parse(b.redisURL)
	if err != nil {
		return 0, fmt.Errorf("parse the address of Redis: %w", err)
	}
	p, err := newProxy(ctx, to.Host)
	if err != nil {
		return 0, err
	}
	defer p.close()
	if err := b.redis.FlushAll(ctx).Err(); err != nil {
		return 0, fmt.Errorf("empty Redis: %w", err)
	}
	through := *to
	through.Host = p.listener.Addr().String()
	c.Redis = through.String()
	s, err := b.serve(ctx, c)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	// Load first opens all needed connections to Redis, so that their handshakes are not counted.
	const first = 10 * door.Connections
	if _, err := door.Fire(ctx, s.Addr, b.events(s, first), 0); err != nil {
		return 0, err
	}
	if _, err := s.waiting(ctx, b.redis, first); err != nil {
		return 0, err
	}
	before := p.trips.Load()
	for _, r := range b.events(s, b.Counted) {
		if _, err := door.Fire(ctx, s.Addr, [][]byte{r}, 0); err != nil {
			return 0, err
		}
	}
	_, err = s.waiting(ctx, b.redis, first+b.Counted)
	return float64(p.trips.Load()-before) / float64(b.Counted), err
}

// proxy is between a contender and Redis and counts round trips: each time that a request follows a response on a
// connection.
type proxy struct {
	listener net.Listener
	trips    atomic.Int64
	all      sync.WaitGroup
	stop     context.CancelFunc
}

func newProxy(ctx context.Context, to string) (*proxy, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	ctx, stop := context.WithCancel(ctx)
	p := &proxy{listener: l, stop: stop}
	p.all.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			p.all.Go(func() { p.pass(ctx, client, to) })
		}
	})
	return p, nil
}

// pass is one connection.
func (p *proxy) pass(ctx context.Context, client net.Conn, to string) {
	defer client.Close()
	redis, err := new(net.Dialer).DialContext(ctx, "tcp", to)
	if err != nil {
		return
	}
	defer redis.Close()
	defer context.AfterFunc(ctx, func() { _, _ = client.Close(), redis.Close() })()
	var answered atomic.Bool
	answered.Store(true)
	p.all.Go(func() {
		_ = forward(client, redis, func() { answered.Store(true) })
		_ = client.Close()
	})
	_ = forward(redis, client, func() {
		if answered.Swap(false) {
			p.trips.Add(1)
		}
	})
}

// forward copies until one side ends, and reports each piece before it is passed on.
func forward(to, from net.Conn, tell func()) error {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			tell()
			if _, err := to.Write(buf[:n]); err != nil {
				return err
			}
		}
		if err != nil {
			return err
		}
	}
}

func (p *proxy) close() {
	p.stop()
	_ = p.listener.Close()
	p.all.Wait()
}
