package githubfake

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
)

// Failure replaces the answer of a route.
type Failure struct {
	Times  int // how many requests; 0 means one, negative means until lifted
	Status int // 0 without Hold: the connection is cut without an answer
	Body   string
	Header http.Header

	// After performs the request first and then fails: the answer is lost,
	// the effect is not.
	After bool
	// Hold keeps the request waiting until it is closed (or the server is).
	// With Status 0 the request is served normally afterwards.
	Hold <-chan struct{}
}

type planned struct {
	pattern string
	Failure
}

// Fail makes the next requests of a route fail; several failures of one route
// are used up in the order they were planned. The returned function lifts this
// one early. An unknown pattern panics: a test would wait for it in vain.
//
// net/http repeats a GET by itself when a reused connection is cut.
func (s *Server) Fail(pattern string, f Failure) (lift func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mustKnow(pattern)
	if f.Times == 0 {
		f.Times = 1
	}
	p := &planned{pattern, f}
	s.failures = append(s.failures, p)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.drop(p)
	}
}

// takeFailure returns the failure planned for this request, or nil.
func (s *Server) takeFailure(pattern string) *Failure {
	i := slices.IndexFunc(s.failures, func(p *planned) bool { return p.pattern == pattern })
	if i < 0 {
		return nil
	}
	p := s.failures[i]
	if p.Times--; p.Times == 0 {
		s.drop(p)
	}
	f := p.Failure
	return &f
}

func (s *Server) drop(p *planned) {
	s.failures = slices.DeleteFunc(s.failures, func(o *planned) bool { return o == p })
}

func (s *Server) mustKnow(pattern string) {
	known := func(rt route) bool { return rt.pattern == pattern }
	if !slices.ContainsFunc(s.rest, known) && !slices.ContainsFunc(s.web, known) {
		panic(fmt.Sprintf("githubfake: no route %q", pattern))
	}
}

// write answers with the failure instead of what was asked for.
func (f *Failure) write(w http.ResponseWriter) {
	if f.Status == 0 {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	maps.Copy(w.Header(), f.Header)
	body := f.Body
	if body == "" {
		body = fmt.Sprintf(`{"message":%q}`, http.StatusText(f.Status))
	}
	w.WriteHeader(f.Status)
	_, _ = w.Write([]byte(body))
}
