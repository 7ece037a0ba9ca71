package githubfake

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	docs             = "https://docs.github.com/rest"
	notByIntegration = "Resource not accessible by integration"
)

// object is JSON as GitHub writes it: with explicit nulls, which struct tags
// with omitempty would drop.
type object = map[string]any

// reply is the answer of a REST route.
type reply struct {
	status int
	body   any    // JSON; nil means no body
	text   string // sent instead of JSON, for diffs
	link   string

	location string // where a redirect leads
}

func ok(body any) reply      { return reply{status: 200, body: body} }
func created(body any) reply { return reply{status: 201, body: body} }

// fail is an error in GitHub's shape.
func fail(status int, message string) reply {
	return reply{status: status, body: object{
		"message": message, "documentation_url": docs, "status": strconv.Itoa(status),
	}}
}

// broken reports a git that failed: a fault of the fake or of the test.
func broken(err error) reply { return fail(500, err.Error()) }

// invalid is a 422. An entry is an object, or a string where GitHub sends
// strings (reviews do).
func invalid(message string, errors ...any) reply {
	return reply{status: 422, body: object{
		"message": message, "errors": errors, "documentation_url": docs, "status": "422",
	}}
}

// unprocessable is the 422 of one field, or of none, with a sentence.
func unprocessable(resource, field, message string) reply {
	problem := object{"resource": resource, "code": "custom", "message": message}
	if field != "" {
		problem["field"] = field
	}
	return invalid("Validation Failed", problem)
}

func (a reply) write(w http.ResponseWriter) {
	if a.link != "" {
		w.Header().Set("Link", a.link)
	}
	if a.location != "" {
		w.Header().Set("Location", a.location)
	}
	switch {
	case a.text != "":
		w.Header().Set("Content-Type", "application/vnd.github.diff; charset=utf-8")
		w.WriteHeader(a.status)
		_, _ = w.Write([]byte(a.text))
	case a.body == nil:
		w.WriteHeader(a.status)
	default:
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.WriteHeader(a.status)
		_ = json.NewEncoder(w).Encode(a.body)
	}
}

// rateHeaders says that there is always room: go-github stops by itself at a
// remaining of zero, and only a Failure should bring that about.
func (s *Server) rateHeaders(h http.Header) {
	h.Set("X-GitHub-Request-Id", fmt.Sprintf("FAKE:%X", s.id()))
	h.Set("X-RateLimit-Limit", "5000")
	h.Set("X-RateLimit-Remaining", "4999")
	h.Set("X-RateLimit-Used", "1")
	h.Set("X-RateLimit-Reset", strconv.FormatInt(s.now().Add(time.Hour).Unix(), 10))
}

// page cuts a list as GitHub does: 30 by default, at most 100, with a Link
// header of absolute addresses.
func page[T any](s *Server, r *request, all []T) ([]T, string) {
	q := r.URL.Query()
	size := between(q.Get("per_page"), 30, 100)
	n := between(q.Get("page"), 1, 1<<20)
	last := max(1, (len(all)+size-1)/size)
	var links []string
	add := func(rel string, to int) {
		q.Set("page", strconv.Itoa(to))
		links = append(links, fmt.Sprintf(`<%s%s?%s>; rel="%s"`, strings.TrimSuffix(s.APIURL(), "/"),
			r.URL.EscapedPath(), q.Encode(), rel))
	}
	if n > 1 {
		add("prev", n-1)
	}
	if n < last {
		add("next", n+1)
		add("last", last)
	}
	if n > 1 {
		add("first", 1)
	}
	// A page past the end is empty, not an error.
	from := min((n-1)*size, len(all))
	return all[from:min(from+size, len(all))], strings.Join(links, ", ")
}

func between(text string, standard, most int) int {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return standard
	}
	return min(n, most)
}

// listing pages a list and renders what is on the page.
func listing[T any](s *Server, r *request, all []T, render func(T) object) reply {
	some, link := page(s, r, all)
	out := make([]object, len(some))
	for i, v := range some {
		out[i] = render(v)
	}
	return reply{status: 200, body: out, link: link}
}

// decode reads a JSON body into v.
func decode(r *request, v any) (reply, bool) {
	if err := json.Unmarshal(r.body, v); err != nil {
		return fail(400, "Problems parsing JSON"), false
	}
	return reply{}, true
}

// orNull is null for the zero value.
func orNull[T comparable](v T) any {
	if v == *new(T) {
		return nil
	}
	return v
}

// stamp is a time in JSON: or null.
func stamp(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.Format(time.RFC3339)
}

// revalidate gives an answer an ETag, and leaves out what a client says that it has.
func (rec *recorder) revalidate(r *request) {
	if r.git || r.Method != http.MethodGet || rec.status != http.StatusOK && rec.status != 0 {
		return
	}
	etag := fmt.Sprintf(`W/"%x"`, sha256.Sum256(rec.body.Bytes()))
	rec.header.Set("ETag", etag)
	if r.Header.Get("If-None-Match") == etag {
		rec.status = http.StatusNotModified
		rec.body.Reset()
	}
}
