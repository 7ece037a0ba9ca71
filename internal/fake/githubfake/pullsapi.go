package githubfake

import (
	"fmt"
	"slices"
	"strings"
)

func (s *Server) pullRoutes() {
	s.api("GET /repos/{o}/{r}/pulls", "pull_requests:read", s.listPulls)
	s.api("POST /repos/{o}/{r}/pulls", "pull_requests:write", s.createPull)
	s.api("GET /repos/{o}/{r}/pulls/{n}", "pull_requests:read", s.getPull)
	s.api("PATCH /repos/{o}/{r}/pulls/{n}", "pull_requests:write", s.editPull)
	s.api("POST /repos/{o}/{r}/pulls/{n}/requested_reviewers", "pull_requests:write", s.requestReviewers)
	s.api("POST /repos/{o}/{r}/issues/{n}/labels", "issues,pull_requests:write", s.addLabels)
	s.api("GET /repos/{o}/{r}/pulls/{n}/files", "pull_requests:read", func(r *request) reply {
		// GitHub lists at most 3,000.
		return listing(s, r, r.pull.files[:min(len(r.pull.files), 3000)], func(f fileDiff) object {
			return s.file(r.pull, f)
		})
	})
}

// requestReviewers knows people only, and takes only those with write access for collaborators.
func (s *Server) requestReviewers(r *request) reply {
	var ask struct{ Reviewers []string }
	if a, good := decode(r, &ask); !good {
		return a
	}
	for _, login := range ask.Reviewers {
		switch {
		case strings.EqualFold(login, r.pull.user):
			return fail(422, "Review cannot be requested from pull request author.")
		case !slices.Contains([]string{"admin", "write"}, s.permission(r.repo, login)):
			return fail(422,
				"Reviews may only be requested from collaborators. One or more of the users or teams you specified is not a collaborator of the "+
					r.repo.FullName()+" repository.")
		}
	}
	r.pull.reviewers = append(r.pull.reviewers, ask.Reviewers...)
	return created(s.pullJSON(r.pull))
}

// addLabels makes the labels that the repository lacks.
func (s *Server) addLabels(r *request) reply {
	var ask struct{ Labels []string }
	if a, good := decode(r, &ask); !good {
		return a
	}
	for _, name := range ask.Labels {
		s.addLabel(r.issue, name, r.who.login)
	}
	return ok(s.issueJSON(r.issue)["labels"])
}

// listPulls knows the filters state, head (owner:branch) and base; the newest
// comes first, as on GitHub.
func (s *Server) listPulls(r *request) reply {
	q := r.URL.Query()
	state := q.Get("state")
	if state == "" {
		state = "open"
	}
	var some []*pull
	for _, p := range r.repo.pulls {
		head := "unknown:" + p.head // of a deleted fork
		if p.headRepo != nil {
			head = p.headRepo.owner + ":" + p.head
		}
		switch {
		case state != "all" && state != p.state,
			q.Get("head") != "" && !strings.EqualFold(q.Get("head"), head),
			q.Get("base") != "" && q.Get("base") != p.base:
			continue
		}
		some = append(some, p)
	}
	slices.Reverse(some)
	return listing(s, r, some, s.pullJSON)
}

func (s *Server) getPull(r *request) reply {
	p := r.pull
	accept := r.Header.Get("Accept")
	if strings.Contains(accept, ".diff") {
		text, err := s.diff(p.repo.dir, p.baseSHA, p.headSHA)
		if err != nil {
			return broken(err)
		}
		if len(p.files) > maxDiffFiles || strings.Count(text, "\n") > maxDiffLines {
			a := fail(406, "Sorry, the diff exceeded the maximum number of files (300) or lines (20000).")
			a.body.(object)["errors"] = []object{{"resource": "PullRequest", "field": "diff", "code": "too_large"}}
			return a
		}
		return reply{status: 200, text: text}
	}
	detail := s.pullDetail(p)
	if p.state == "open" {
		// Against the base branch of now, not of when the head was pushed.
		fits := s.mergeable(p.repo.dir, p.base, p.headSHA)
		detail["mergeable"] = fits
		switch {
		case !fits:
			detail["mergeable_state"] = "dirty"
		case p.draft:
			detail["mergeable_state"] = "draft"
		default:
			detail["mergeable_state"] = "clean"
		}
	}
	return ok(detail)
}

func (s *Server) createPull(r *request) reply {
	var ask struct {
		Title, Head, Base, Body string
		Draft                   bool
	}
	if a, good := decode(r, &ask); !good {
		return a
	}
	// "branch" and "owner:branch" are both right.
	owner, branch, qualified := strings.Cut(ask.Head, ":")
	if !qualified {
		owner, branch = r.repo.owner, ask.Head
	}
	head := s.resolve(r.repo.dir, branch)
	base := s.resolve(r.repo.dir, ask.Base)
	field := func(name string) reply {
		return invalid("Validation Failed", object{"resource": "PullRequest", "field": name, "code": "invalid"})
	}
	switch {
	case ask.Title == "":
		return invalid("Validation Failed", object{
			"resource": "PullRequest", "field": "title", "code": "missing_field",
		})
	case head == "" || !strings.EqualFold(owner, r.repo.owner):
		return field("head") // clients here have no forks
	case base == "":
		return field("base")
	case tooLong(ask.Body):
		return unprocessable("PullRequest", "body", bodyTooLong)
	}
	// The two refusals a publisher has to expect: nothing was committed, and
	// another request (an earlier attempt) was first.
	if commits, err := s.commits(r.repo.dir, base, head); err == nil && len(commits) == 0 {
		return unprocessable("PullRequest", "", fmt.Sprintf("No commits between %s and %s", ask.Base, branch))
	}
	for _, p := range r.repo.pulls {
		if p.state == "open" && p.headRepo == r.repo && p.head == branch && p.base == ask.Base {
			return unprocessable("PullRequest", "", fmt.Sprintf("A pull request already exists for %s:%s.",
				r.repo.owner, branch))
		}
	}
	p, err := s.addPull(r.repo, r.repo, PR{
		Base: ask.Base, Head: branch, Title: ask.Title, Body: ask.Body, User: r.who.login, Draft: ask.Draft,
	})
	if err != nil {
		return broken(err)
	}
	s.echo(s.pullEvent("opened", p, r.who.login, nil))
	return created(s.pullDetail(p))
}

// editPull knows title, body, state and base. Like GitHub's REST it does not
// know draft (only GraphQL does), and ignores it.
func (s *Server) editPull(r *request) reply {
	var ask struct{ Title, Body, State, Base *string }
	if a, good := decode(r, &ask); !good {
		return a
	}
	p := r.pull
	if ask.Body != nil && tooLong(*ask.Body) {
		return unprocessable("PullRequest", "body", bodyTooLong)
	}
	changes := object{} // what "edited" reports: the old values
	if ask.Base != nil && *ask.Base != p.base {
		if s.resolve(p.repo.dir, *ask.Base) == "" {
			return unprocessable("PullRequest", "base", "Proposed base branch '"+*ask.Base+"' was not found")
		}
		old, err := s.retarget(p, *ask.Base)
		if err != nil {
			return broken(err)
		}
		changes["base"] = old
	}
	for name, field := range map[string]struct{ to, at *string }{
		"title": {ask.Title, &p.title}, "body": {ask.Body, &p.body},
	} {
		if field.to != nil && *field.to != *field.at {
			changes[name] = object{"from": *field.at}
			*field.at = *field.to
		}
	}
	if len(changes) > 0 {
		p.updated = s.now()
		s.echo(s.pullEvent("edited", p, r.who.login, object{"changes": changes}))
	}
	if ask.State != nil && *ask.State != p.state {
		switch {
		case *ask.State == "closed":
			s.echo(s.turn(p, "closed", r.who.login))
		case *ask.State == "open" && !p.merged:
			s.echo(s.turn(p, "reopened", r.who.login))
		default:
			return unprocessable("PullRequest", "state", "state cannot be changed.")
		}
	}
	return ok(s.pullDetail(p))
}
