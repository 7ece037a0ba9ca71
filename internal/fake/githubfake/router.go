package githubfake

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// route is one thing the fake answers. net/http's mux cannot hold GitHub's
// routes: issues/comments/{id} and issues/{n}/comments conflict there, and a
// branch name in {ref} has slashes.
type route struct {
	pattern string // "GET /repos/{o}/{r}", as Fail and Calls take it; "" for the rest
	method  string
	path    *regexp.Regexp
	answer  func(http.ResponseWriter, *request)
}

var wildcard = regexp.MustCompile(`\{(\w+)\}`)

// handle registers a route. {n} and {id} are numbers, {ref} and {path} may have slashes,
// everything else is one segment.
func handle(routes *[]route, pattern string, answer func(http.ResponseWriter, *request)) {
	method, path, _ := strings.Cut(pattern, " ")
	expr := wildcard.ReplaceAllStringFunc(path, func(w string) string {
		name := strings.Trim(w, "{}")
		switch name {
		case "n", "id":
			return `(?P<` + name + `>\d+)`
		case "ref", "path":
			return `(?P<` + name + `>.+)`
		}
		return `(?P<` + name + `>[^/]+)`
	})
	*routes = append(*routes, route{pattern, method, regexp.MustCompile("^" + expr + "$"), answer})
}

// find returns the route of a request and gives the request its path values.
// The first that matches wins.
func find(routes []route, r *request) route {
	for _, rt := range routes {
		m := rt.path.FindStringSubmatch(r.URL.Path)
		if m == nil || rt.method != r.Method {
			continue
		}
		for i, name := range rt.path.SubexpNames() {
			if name != "" {
				r.SetPathValue(name, m[i])
			}
		}
		return rt
	}
	return route{answer: func(w http.ResponseWriter, r *request) {
		if r.git {
			http.NotFound(w, r.Request)
			return
		}
		fail(404, "Not Found").write(w)
	}}
}

// Routes lists the patterns of REST and GraphQL that the fake answers, sorted.
func (s *Server) Routes() []string {
	var all []string
	for _, rt := range s.rest {
		all = append(all, rt.pattern)
	}
	slices.Sort(all)
	return all
}
