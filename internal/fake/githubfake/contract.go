package githubfake

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/errand-fleet/errand/internal/fake/contract"
)

//go:embed schemas.json.gz
var zippedSchemas []byte

// Contract returns GitHub's own description of the operations that the fake answers, of github.com and of the releases
// of GitHub Enterprise Server. Its schemas are named by route: "GET /user query", "POST /graphql body", "GET /user
// 200".
var Contract = contract.Embedded(zippedSchemas)

// Breaches returns what requests and answers had that GitHub's description does not allow, and forgets it. Each is also
// answered with 422. Close panics if any is left, so that no test can overlook one.
func (s *Server) Breaches() []string { return s.breaches.Drain() }

// breach records an error and makes it the answer.
func (s *Server) breach(w *recorder, r *request, err error) {
	s.breaches.Add(fmt.Sprintf("%s %s: %v", r.Method, r.URL.Path, err))
	*w = recorder{header: http.Header{}}
	fail(http.StatusUnprocessableEntity, "GitHub's description does not allow this: "+err.Error()).write(w)
}

// checkRequest compares a request with GitHub's description.
func (s *Server) checkRequest(pattern string, r *request) error {
	c := Contract()
	if !c.Has(pattern + " query") {
		return nil // git, GraphQL, or no route
	}
	query := c.Form(pattern+" query", r.URL.Query())
	if err := c.Check(pattern+" query", query, false); err != nil {
		return err
	}
	var body any
	if len(r.body) > 0 {
		if kind := r.Header.Get("Content-Type"); !strings.HasPrefix(kind, "application/json") {
			return fmt.Errorf("%s: the body is %q, not JSON", pattern, kind)
		}
		if err := json.Unmarshal(r.body, &body); err != nil {
			return fmt.Errorf("%s: read body: %w", pattern, err)
		}
	}
	if c.Has(pattern + " body") {
		return c.Check(pattern+" body", body, false)
	}
	if body != nil {
		return fmt.Errorf("%s: GitHub takes no body", pattern)
	}
	return nil
}

// checkAnswer compares an answer of the fake with GitHub's description, after it has added what GitHub always sends and
// the fake has no opinion on.
func (s *Server) checkAnswer(pattern string, rec *recorder) error {
	c, name := Contract(), pattern+" "+strconv.Itoa(max(rec.status, http.StatusOK))
	if !c.Has(name) {
		if rec.status >= 400 || !c.Has(pattern+" query") {
			return nil // the description leaves out most refusals
		}
		return fmt.Errorf("%s: GitHub never answers so", name)
	}
	if !strings.HasPrefix(rec.header.Get("Content-Type"), "application/json") {
		return nil // a diff, a redirect, or nothing
	}
	var body any
	if err := json.Unmarshal(rec.body.Bytes(), &body); err != nil {
		return fmt.Errorf("%s: read answer: %w", name, err)
	}
	body = c.Complete(name, body, s.url)
	if err := c.Check(name, body, false); err != nil {
		return err
	}
	rec.body.Reset()
	return json.NewEncoder(&rec.body).Encode(body)
}
