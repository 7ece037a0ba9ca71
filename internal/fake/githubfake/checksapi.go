package githubfake

import (
	"fmt"
	"slices"
	"strconv"
)

// checkRoutes are for an App's installation only: admit refuses a plain token
// whatever it asks of a "checks" scope.
func (s *Server) checkRoutes() {
	s.api("POST /repos/{o}/{r}/check-runs", "checks:write", s.createCheck)
	s.api("PATCH /repos/{o}/{r}/check-runs/{id}", "checks:write", s.onCheck(s.updateCheck))
	s.api("GET /repos/{o}/{r}/commits/{ref}/check-runs", "checks:read", s.onCommit(s.listChecks))
}

func (s *Server) onCheck(h func(*request, *CheckRun) reply) func(*request) reply {
	return func(r *request) reply {
		id, _ := strconv.ParseInt(r.PathValue("id"), 10, 64)
		for _, all := range r.repo.checks {
			for _, c := range all {
				if c.ID == id {
					return h(r, c)
				}
			}
		}
		return fail(404, "Not Found")
	}
}

func (s *Server) createCheck(r *request) reply {
	var ask checkAsk
	if a, good := decode(r, &ask); !good {
		return a
	}
	if ask.Name == nil || *ask.Name == "" || ask.HeadSHA == nil {
		return fail(422, "Invalid request.\n\n\"name\", \"head_sha\" weren't supplied.")
	}
	sha := *ask.HeadSHA
	// No branch, no abbreviation: a check belongs to exactly one commit.
	if len(sha) != 40 || s.resolve(r.repo.dir, sha) != sha {
		return fail(422, "No commit found for SHA: "+sha)
	}
	if problem := ask.problem(); problem != "" {
		return fail(422, "Invalid request.\n\n"+problem)
	}
	c := &CheckRun{ID: s.id(), SHA: sha, CheckState: CheckState{Status: "queued"}, StartedAt: s.now()}
	s.apply(&ask, c)
	r.repo.checks[sha] = append(r.repo.checks[sha], c)
	s.echo(s.checkEvent("created", r, c))
	return created(s.check(r.repo, c))
}

func (s *Server) updateCheck(r *request, c *CheckRun) reply {
	var ask checkAsk
	if a, good := decode(r, &ask); !good {
		return a
	}
	if problem := ask.problem(); problem != "" {
		return fail(422, "Invalid request.\n\n"+problem)
	}
	before := c.Status
	s.apply(&ask, c)
	// An update of a running check is no event.
	if c.Status == "completed" && before != "completed" {
		s.echo(s.checkEvent("completed", r, c))
	}
	return ok(s.check(r.repo, c))
}

// listChecks shows only the latest run of each name unless filter=all.
func (s *Server) listChecks(r *request, sha string) reply {
	q := r.URL.Query()
	var some []*CheckRun
	seen := map[string]bool{}
	for _, c := range slices.Backward(r.repo.checks[sha]) {
		old := seen[c.Name] && q.Get("filter") != "all"
		seen[c.Name] = true
		if old || q.Get("check_name") != "" && q.Get("check_name") != c.Name ||
			q.Get("status") != "" && q.Get("status") != c.Status {
			continue
		}
		some = append(some, c)
	}
	a := listing(s, r, some, func(c *CheckRun) object { return s.check(r.repo, c) })
	a.body = object{"total_count": len(some), "check_runs": a.body}
	return a
}

func (s *Server) check(r *Repo, c *CheckRun) object {
	api := fmt.Sprintf("%srepos/%s/check-runs/%d", s.APIURL(), r.FullName(), c.ID)
	pulls := []object{}
	for _, p := range r.pulls {
		// GitHub links pull requests of the same repository only, never a fork's.
		if p.headRepo == r && p.headSHA == c.SHA && p.state == "open" {
			pulls = append(pulls, object{
				"number": p.number, "id": p.id, "head": object{"ref": p.head, "sha": p.headSHA},
				"base": object{"ref": p.base, "sha": p.baseSHA},
			})
		}
	}
	app := s.app()
	if c.Job {
		app = actionsApp
	}
	return object{
		"id": c.ID, "node_id": node("CheckRun", c.ID), "name": c.Name, "head_sha": c.SHA, "external_id": c.ExternalID,
		"url": api, "html_url": fmt.Sprintf("%s/%s/runs/%d", s.url, r.FullName(), c.ID), "details_url": c.DetailsURL,
		"status": c.Status, "conclusion": orNull(c.Conclusion), "started_at": stamp(c.StartedAt),
		"completed_at": stamp(c.CompletedAt),
		"output": object{
			"title": orNull(c.Title), "summary": orNull(c.Summary), "text": orNull(c.Text),
			"annotations_count": 0, "annotations_url": api + "/annotations",
		},
		// By app.id and external_id our code tells its own runs from others'.
		"app": app, "check_suite": object{"id": c.ID}, "pull_requests": pulls,
	}
}

func (s *Server) checkEvent(action string, r *request, c *CheckRun) event {
	body := s.envelope(r.repo, r.who.login)
	suite := object{"id": c.ID, "head_sha": c.SHA, "head_branch": nil, "updated_at": stamp(s.now())}
	if at := s.branchesAt(r.repo, c.SHA); len(at) > 0 {
		suite["head_branch"] = at[0]
	}
	run := s.check(r.repo, c)
	run["check_suite"] = suite // REST has its id only
	body["action"], body["check_run"] = action, run
	return s.encode("check_run", body)
}
