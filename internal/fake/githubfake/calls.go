package githubfake

import (
	"net/http"
	"net/url"
	"time"
)

// Call is one request the fake received, REST or git.
type Call struct {
	Pattern string // the route, "" when there was none
	Method  string
	Path    string // as sent, without the REST prefix
	Query   url.Values
	Header  http.Header // without Authorization
	Body    []byte      // REST only
	Login   string      // who called, "" if anonymous
	As      string      // "token", "app", "installation", "" for nobody, "refused" for bad credentials
	At      time.Time
	Status  int // of the answer; 0 while unanswered, and if the connection was cut
}

// Calls returns the requests of one route in order of arrival, those still
// unanswered included; "" means all. An unknown pattern panics, as in Fail.
func (s *Server) Calls(pattern string) []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	if pattern != "" {
		s.mustKnow(pattern)
	}
	var out []Call
	for _, c := range s.calls {
		if pattern == "" || c.Pattern == pattern {
			out = append(out, *c)
		}
	}
	return out
}

// begin records a request and finds what was planned for it.
func (s *Server) begin(pattern string, r *request) (*Call, *Failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.who = s.identify(r.Request)
	c := &Call{
		Pattern: pattern, Method: r.Method, Path: r.URL.Path, Query: r.URL.Query(), Header: r.Header.Clone(),
		Login: r.who.login, As: r.who.kind, At: s.cfg.Now(),
	}
	c.Header.Del("Authorization") // tests print calls; As and Login say enough
	if !r.git {
		c.Body = r.body
	}
	s.calls = append(s.calls, c)
	s.changed()
	return c, s.takeFailure(pattern)
}

func (s *Server) end(c *Call, status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.Status = status
	s.changed()
}
