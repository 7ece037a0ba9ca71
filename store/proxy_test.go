package store

import (
	"io"
	"net"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
)

// proxy is the network between a worker and Redis: it can be cut and restored.
type proxy struct {
	l      net.Listener
	target string

	mu    sync.Mutex
	cut   bool
	conns map[net.Conn]bool
}

func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{l: l, target: target, conns: map[net.Conn]bool{}}
	go p.serve()
	t.Cleanup(func() { _ = l.Close(); p.setCut(true) })
	return p
}

func (p *proxy) serve() {
	for {
		in, err := p.l.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", p.target)
		if err != nil || !p.add(in, out) {
			_ = in.Close()
			continue
		}
		go pipe(in, out)
		go pipe(out, in)
	}
}

func (p *proxy) add(in, out net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cut {
		_ = out.Close()
		return false
	}
	p.conns[in], p.conns[out] = true, true
	return true
}

func (p *proxy) setCut(cut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = cut
	if cut {
		for c := range p.conns {
			_ = c.Close()
		}
		clear(p.conns)
	}
}

func pipe(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	_ = to.Close()
	_ = from.Close()
}

// behindProxy is a store that reaches Redis through a separate network.
func (h *harness) behindProxy(cfg Config) (*Store, *proxy) {
	h.Helper()
	opt, err := redis.ParseURL(h.url)
	h.ok(err)
	p := newProxy(h.T, opt.Addr)
	opt.Addr, opt.MaxRetries = p.l.Addr().String(), -1
	client := redis.NewClient(opt)
	h.Cleanup(func() { _ = client.Close() })
	cfg.Redis = client
	return h.store(cfg), p
}
