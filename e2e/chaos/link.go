package main

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"
)

// link is a TCP proxy: a fixed address for a server that can move, and a cable that can be cut. While it is cut nothing
// passes and nothing is refused, as in a real partition. Data that was sent meanwhile arrives after the repair, also
// from a peer that has left.
type link struct {
	ln net.Listener

	mu     sync.Mutex
	target string
	whole  chan struct{} // closed while the link is whole
	conns  map[net.Conn]bool
	closed bool
}

func newLink() (*link, error) {
	ln, err := listen()
	if err != nil {
		return nil, fmt.Errorf("start proxy: %w", err)
	}
	l := &link{ln: ln, whole: make(chan struct{}), conns: map[net.Conn]bool{}}
	close(l.whole)
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go l.serve(c)
		}
	}()
	return l, nil
}

func (l *link) addr() string { return l.ln.Addr().String() }

// aim sets the server's address.
func (l *link) aim(target string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.target = target
}

// cut lets nothing pass until repair is called.
func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.whole = make(chan struct{})
}

func (l *link) repair() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.whole:
	default:
		close(l.whole)
	}
}

// pass waits until the link is whole.
func (l *link) pass() {
	l.mu.Lock()
	whole := l.whole
	l.mu.Unlock()
	<-whole
}

// close ends everything.
func (l *link) close() {
	l.repair()
	_ = l.ln.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for c := range l.conns {
		_ = c.Close()
	}
}

// keep registers a connection to close with the link. It returns false if the link is already closed.
func (l *link) keep(c net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns[c] = true
	return !l.closed
}

func (l *link) drop(c net.Conn) {
	_ = c.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, c)
}

func (l *link) serve(client net.Conn) {
	defer l.drop(client)
	if !l.keep(client) {
		return
	}
	l.pass()
	l.mu.Lock()
	target := l.target
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	var d net.Dialer
	server, err := d.DialContext(ctx, "tcp", target)
	if err != nil {
		return
	}
	defer l.drop(server)
	if !l.keep(server) {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { l.pipe(server, client) })
	both.Go(func() { l.pipe(client, server) })
	both.Wait()
}

// pipe forwards data, and then the end of the stream.
func (l *link) pipe(to, from net.Conn) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		l.pass()
		if n > 0 {
			if _, werr := to.Write(buf[:n]); werr != nil {
				err = werr
			}
		}
		if err != nil {
			// Redis and its clients cannot use half a connection, and it would leak.
			_ = to.Close()
			_ = from.Close()
			return
		}
	}
}
