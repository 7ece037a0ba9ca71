package githubfake

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

func (s *Server) issueRoutes() {
	s.api("GET /repos/{o}/{r}/issues", "issues:read", s.listIssues)
	s.api("GET /repos/{o}/{r}/issues/{n}", "issues,pull_requests:read", func(r *request) reply {
		return ok(s.issueJSON(r.issue))
	})
	s.api("GET /repos/{o}/{r}/issues/{n}/events", "issues,pull_requests:read", func(r *request) reply {
		return listing(s, r, r.issue.events, func(e issueEvent) object {
			o := object{
				"id": e.id, "event": e.event, "actor": s.user(e.user), "created_at": stamp(e.at), "commit_id": nil,
			}
			if e.event == "labeled" {
				o["label"] = object{"name": e.what, "color": "ededed"}
			} else {
				o["assignee"], o["assigner"] = s.user(e.what), s.user(e.user)
			}
			return o
		})
	})
}

// subject finds the pull request or the issue of a path with {n}.
func (s *Server) subject(r *request, number int, scopes, level string) (reply, bool) {
	if r.pull = r.repo.pull(number); r.pull != nil {
		r.issue = &r.pull.issue
		return reply{}, false
	}
	at := slices.IndexFunc(r.repo.issues, func(i *issue) bool { return i.number == number })
	if at < 0 || !strings.Contains(scopes, "issues") {
		return fail(404, "Not Found"), true
	}
	// The permission for pull requests opens the conversations of those only.
	if r.who.kind != nobody && !r.who.may("issues", level) {
		return fail(403, notByIntegration), true
	}
	switch i := r.repo.issues[at]; {
	case i.gone:
		return fail(http.StatusGone, "This issue was deleted"), true
	case i.moved != nil && r.Method != http.MethodGet:
		return fail(http.StatusNotFound, "Not Found"), true
	case i.moved != nil:
		a := fail(http.StatusMovedPermanently, "Moved Permanently")
		rest := strings.SplitN(strings.TrimPrefix(r.URL.Path, "/"), "/", 6)
		a.location = fmt.Sprintf("%srepos/%s/issues/%d", s.APIURL(), i.moved.repo.FullName(), i.moved.number)
		if len(rest) > 5 {
			a.location += "/" + rest[5]
		}
		return a, true
	default:
		r.issue = i
	}
	return reply{}, false
}

// writes reports whether the caller may comment where a conversation is locked: people with write access may, Apps may
// not.
func (s *Server) writes(r *request) bool {
	return r.who.kind == tokenCaller
}

// listIssues lists pull requests as well, the newest first. It knows the filters state and since, and sort by updated.
func (s *Server) listIssues(r *request) reply {
	q, since := r.URL.Query(), sinceOf(r)
	some := slices.DeleteFunc(r.repo.conversations(), func(i *issue) bool {
		state := q.Get("state")
		return i.updated.Before(since) || state == "" && i.state != "open" ||
			state != "" && state != "all" && i.state != state
	})
	slices.Reverse(some)
	if q.Get("sort") == "updated" {
		slices.SortStableFunc(some, func(a, b *issue) int { return b.updated.Compare(a.updated) })
	}
	return listing(s, r, some, s.issueJSON)
}

// issueURL is the page of an issue or a pull request.
func (s *Server) issueURL(i *issue) string {
	kind := "issues"
	if i.pull != nil {
		kind = "pull"
	}
	return fmt.Sprintf("%s/%s/%s/%d", s.url, i.repo.FullName(), kind, i.number)
}

func label(name string) object {
	return object{"name": name, "color": "ededed", "default": false}
}

// issueJSON is an issue; a pull request shows as an issue with a pull_request link.
func (s *Server) issueJSON(i *issue) object {
	labels, assignees := make([]object, len(i.labels)), make([]object, len(i.assignees))
	for n, name := range i.labels {
		labels[n] = label(name)
	}
	for n, login := range i.assignees {
		assignees[n] = s.user(login)
	}
	api := s.APIURL() + "repos/" + i.repo.FullName()
	one := fmt.Sprintf("%s/issues/%d", api, i.number)
	o := object{
		"id": i.id, "node_id": node("Issue", i.id), "number": i.number, "title": i.title, "body": orNull(i.body),
		"state": i.state, "user": s.user(i.user), "labels": labels, "locked": i.locked, "assignees": assignees,
		"assignee": nil, "milestone": nil, "html_url": s.issueURL(i), "url": one, "comments_url": one + "/comments",
		"repository_url": api, "comments": len(i.comments), "created_at": stamp(i.created),
		"updated_at": stamp(i.updated), "closed_at": stamp(i.closed),
		"author_association": s.association(i.repo, i.user), "reactions": tally(i.reactions),
	}
	if len(assignees) > 0 {
		o["assignee"] = assignees[0]
	}
	if i.pull != nil {
		full := s.pullJSON(i.pull)
		o["id"], o["draft"] = i.id, i.pull.draft
		o["pull_request"] = object{
			"url": full["url"], "html_url": full["html_url"], "diff_url": full["diff_url"],
			"patch_url": full["patch_url"], "merged_at": full["merged_at"],
		}
	}
	return o
}
