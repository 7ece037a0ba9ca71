// Package modelfake is Anthropic's Messages API without a model: a real HTTP server on a loopback port that speaks the
// protocol to the real Claude Code CLI (2.1.329) and gives the answers that a test or the demo has set.
//
// It promises that the same request always gets the same answer: the turn is chosen by the request's own
// conversation (the prompt, and the answers since), so concurrent runs, subagents and resumed sessions need no shared
// state and cannot disturb each other. The one exception is Turn.Times.
//
// Like the API, it refuses malformed requests: no credential (any will do), no anthropic-version, no messages. It does
// not check what only a model would understand: tool schemas, tool results without a call, token limits.
//
// All methods of Server may be called from any goroutine. A Turn belongs to the server once it is passed to Answer.
package modelfake

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// Server is a running fake. New creates one.
type Server struct {
	url    string
	http   *http.Server
	served chan struct{}      // closed when Serve has returned
	cancel context.CancelFunc // ends the context of every request

	mu       sync.Mutex // guards the fields below, and active against Close
	closed   bool
	requests []Request
	scripts  []*script
	active   sync.WaitGroup // handlers
}

// script is the content of one call of Answer.
type script struct {
	match  string
	turns  []Turn
	failed []int // per turn, how many of its Times are used up
}

// New listens on a free loopback port. It panics if no port is free, because a test could do nothing else about it.
func New() *Server {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic("modelfake: " + err.Error())
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{url: "http://" + l.Addr().String(), cancel: cancel, served: make(chan struct{})}
	s.http = &http.Server{
		Handler:     http.HandlerFunc(s.handle),
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	go func() {
		defer close(s.served)
		_ = s.http.Serve(l) // always an error: that of Close
	}()
	return s
}

// URL is the base address, without a slash at the end: the value for ANTHROPIC_BASE_URL.
func (s *Server) URL() string { return s.url }

// Close drops every connection, open streams included, and returns when no handler runs any more. It does not wait for
// clients, gates or pauses. A second call does nothing.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	_ = s.http.Close()
	<-s.served
	s.active.Wait()
}

// Answer assigns turns to the conversations whose latest prompt contains match: the first answer after that prompt is
// turns[0], the one after its tool results turns[1], and so on. "" matches conversations that match nothing else. A
// later call wins over an earlier one. Past the last turn, and without any match, the answer is a short text that says
// so. It panics if a tool input cannot be encoded as JSON.
func (s *Server) Answer(match string, turns ...Turn) {
	for _, t := range turns {
		for _, call := range t.Tools {
			_ = call.json()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scripts = append(s.scripts, &script{match: match, turns: slices.Clone(turns), failed: make([]int, len(turns))})
}

// Requests returns all requests received so far, in order of arrival.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// next picks the turn for a conversation and reports whether this request gets its error or its answer.
func (s *Server) next(conv conversation) (t Turn, fail bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found *script
	for _, sc := range s.scripts {
		byDefault := sc.match == "" && (found == nil || found.match == "")
		if byDefault || sc.match != "" && strings.Contains(conv.prompt, sc.match) {
			found = sc
		}
	}
	if found == nil || conv.turn >= len(found.turns) {
		return Turn{Text: fmt.Sprintf("modelfake: no turn %d for %.80q", conv.turn, conv.prompt)}, false
	}
	t = found.turns[conv.turn]
	if t.Status == 0 || t.Times > 0 && found.failed[conv.turn] >= t.Times {
		return t, false
	}
	found.failed[conv.turn]++
	return t, true
}

// enter reports whether a handler may start. After Close it may not, so that Close can wait for those that did.
func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.active.Add(1)
	}
	return !s.closed
}

func (s *Server) record(r Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
}
