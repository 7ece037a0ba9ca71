package githubfake

import (
	"io"
	"net/http"
	"strconv"
	"strings"
)

// maxBody bounds what one request may carry; pushes are spooled in memory.
const maxBody = 256 << 20

// request is an HTTP request with what the routing found out about it.
type request struct {
	*http.Request
	body  []byte
	git   bool // not REST
	who   caller
	repo  *Repo  // set when the pattern names one
	pull  *pull  // set when the pattern has {n}; nil for an issue that is no pull request
	issue *issue // likewise, and for such an issue
}

// serve answers one request on a route: record the call, apply a planned
// failure, answer.
func (s *Server) serve(w http.ResponseWriter, r *request, rt route) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		fail(http.StatusRequestEntityTooLarge, err.Error()).write(w)
		return
	}
	r.body = body
	call, failure := s.begin(rt.pattern, r)
	rec := &recorder{header: http.Header{}}
	defer func() { s.end(call, rec.status) }()
	if err := s.checkRequest(rt.pattern, r); err != nil {
		s.breach(rec, r, err)
	} else if s.perform(rec, r, failure, rt.answer); failure == nil || failure.Status == 0 {
		if err := s.checkAnswer(rt.pattern, rec); err != nil {
			s.breach(rec, r, err)
		}
	}
	rec.revalidate(r)
	// The state has changed before the client can see the answer, so a
	// client that was answered finds everything in place.
	rec.copyTo(w)
}

func (s *Server) perform(w *recorder, r *request, f *Failure, h func(http.ResponseWriter, *request)) {
	if f != nil && f.Hold != nil {
		select {
		case <-f.Hold:
		case <-r.Context().Done():
			panic(http.ErrAbortHandler)
		case <-s.ctx.Done():
			panic(http.ErrAbortHandler)
		}
	}
	switch {
	case f == nil || f.Status == 0 && f.Hold != nil:
		h(w, r)
	case f.After:
		h(&recorder{header: http.Header{}}, r)
		f.write(w)
	default:
		f.write(w)
	}
}

// api registers a REST route. need is "" for anyone with credentials,
// "jwt" for the App itself, else "scope:level" or "scope,scope:level" with the
// permission an installation token must have. h runs with Server.mu held.
func (s *Server) api(pattern, need string, h func(*request) reply) {
	handle(&s.rest, pattern, func(w http.ResponseWriter, r *request) {
		s.mu.Lock()
		a, refused := s.admit(r, need)
		if !refused {
			a = h(r)
			s.changed()
		}
		s.rateHeaders(w.Header())
		s.mu.Unlock()
		a.write(w)
	})
}

// admit resolves {o}/{r} and {n} and checks that the caller may.
func (s *Server) admit(r *request, need string) (reply, bool) {
	if r.who.kind == refusedCaller {
		return fail(401, r.who.reason), true
	}
	if need == "jwt" {
		if r.who.kind != appCaller {
			return fail(401, "A JSON web token could not be decoded"), true
		}
		need = ""
	} else if r.who.kind == appCaller {
		return fail(403, notByIntegration), true
	}
	scopes, level, _ := strings.Cut(need, ":")
	write := level == "write"
	if o := r.PathValue("o"); o != "" {
		r.repo = s.repos[strings.ToLower(o+"/"+r.PathValue("r"))]
		if r.repo == nil || !r.who.sees(r.repo) {
			return fail(404, "Not Found"), true
		}
	}
	if r.who.kind == nobody && (write || r.repo == nil) {
		return fail(401, "Requires authentication"), true
	}
	if need != "" && !r.who.may(scopes, level) {
		return fail(403, notByIntegration), true
	}
	if strings.HasPrefix(need, "checks:") && r.who.kind == tokenCaller {
		return fail(403, "Resource not accessible by personal access token"), true
	}
	if write && r.repo != nil && r.repo.foreign {
		return fail(403, "Must have write access to the repository."), true
	}
	if n := r.PathValue("n"); n != "" {
		number, _ := strconv.Atoi(n)
		if a, refused := s.subject(r, number, scopes, level); refused {
			return a, true
		}
	}
	return reply{}, false
}
