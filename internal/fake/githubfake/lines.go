package githubfake

import (
	"strconv"
	"strings"
)

// Line is what a person says on a line of the new version of a file.
type Line struct {
	Path string
	Line int
	Body string
}

func (l Line) ask() inlineAsk { return inlineAsk{Path: l.Path, Line: l.Line, Body: l.Body} }

func (s *Server) lineRoutes() {
	const one, write = "/repos/{o}/{r}/pulls/comments/{id}", "pull_requests:write"
	s.api("PATCH "+one, write, func(r *request) reply {
		id, _ := strconv.ParseInt(r.PathValue("id"), 10, 64)
		body, refusal, good := commentBody(r)
		if !good {
			return refusal
		}
		for _, p := range r.repo.pulls {
			for _, c := range p.inline {
				if c.ID == id {
					c.Body = body
					return ok(s.inlineJSON(p, c))
				}
			}
		}
		return fail(404, "Not Found")
	})
	s.api("POST "+one+"/reactions", write, func(r *request) reply {
		id, _ := strconv.ParseInt(r.PathValue("id"), 10, 64)
		for _, p := range r.repo.pulls {
			for _, c := range p.inline {
				if c.ID == id {
					return s.react(r, &c.Reactions)
				}
			}
		}
		return fail(404, "Not Found")
	})
}

// hunkTo is the part of a file's diff that GitHub shows above a comment: its
// hunk, down to the line.
func hunkTo(patch, side string, line int) string {
	other := "-"
	if side == "LEFT" {
		other = "+"
	}
	var shown []string
	n := 0
	for l := range strings.SplitSeq(patch, "\n") {
		if m := hunkHeader.FindStringSubmatch(l); m != nil {
			at := m[2]
			if side == "LEFT" {
				at = m[1]
			}
			n, _ = strconv.Atoi(at)
			shown = []string{l}
			continue
		}
		shown = append(shown, l)
		if strings.HasPrefix(l, other) || strings.HasPrefix(l, `\`) {
			continue
		}
		if n == line {
			break
		}
		n++
	}
	return strings.Join(shown, "\n")
}
