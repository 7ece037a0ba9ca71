package githubfake

import (
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
)

// Status is one commit status. Statuses are never changed: a new one of the
// same context takes the place of the old.
type Status struct {
	ID                                     int64
	SHA                                    string
	Context, State, Description, TargetURL string
	User                                   string
	CreatedAt                              time.Time
}

// maxStatuses is how many a commit may have of one context: a worker that
// reports progress by statuses meets it.
const maxStatuses = 1000

// Statuses returns every status of a commit ever set, oldest first.
func (s *Server) Statuses(repo, sha string) []Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.mustRepo(repo)
	if err != nil {
		return nil
	}
	var out []Status
	for _, v := range r.statuses[sha] {
		out = append(out, *v)
	}
	return out
}

func (s *Server) statusRoutes() {
	s.api("POST /repos/{o}/{r}/statuses/{sha}", "statuses:write", s.createStatus)
	s.api("GET /repos/{o}/{r}/commits/{ref}/status", "statuses:read", s.onCommit(s.combined))
}

// onCommit resolves {ref}: a branch, tag or sha.
func (s *Server) onCommit(h func(*request, string) reply) func(*request) reply {
	return func(r *request) reply {
		sha := s.resolve(r.repo.dir, r.PathValue("ref"))
		if sha == "" {
			return fail(422, "No commit found for SHA: "+r.PathValue("ref"))
		}
		return h(r, sha)
	}
}

func (s *Server) createStatus(r *request) reply {
	var ask struct {
		State, Context, Description string
		TargetURL                   string `json:"target_url"`
	}
	if a, good := decode(r, &ask); !good {
		return a
	}
	if ask.Context == "" {
		ask.Context = "default"
	}
	sha := r.PathValue("sha")
	// Only a full sha: a branch here is a 422 on GitHub, too.
	exists := len(r.repo.statuses[sha]) > 0 || len(sha) == 40 && s.resolve(r.repo.dir, sha) == sha
	had := 0
	for _, v := range r.repo.statuses[sha] {
		if v.Context == ask.Context {
			had++
		}
	}
	switch {
	case !exists:
		return fail(422, "No commit found for SHA: "+sha)
	case !slices.Contains([]string{"error", "failure", "pending", "success"}, ask.State):
		return unprocessable("Status", "state", "state is not included in the list")
	case utf8.RuneCountInString(ask.Description) > 140:
		return unprocessable("Status", "description", "description is too long (maximum is 140 characters)")
	case had >= maxStatuses:
		return unprocessable("Status", "", "This SHA and context has reached the maximum number of statuses.")
	}
	v := &Status{
		ID: s.id(), SHA: sha, Context: ask.Context, State: ask.State, Description: ask.Description,
		TargetURL: ask.TargetURL, User: r.who.login, CreatedAt: s.now(),
	}
	r.repo.statuses[sha] = append(r.repo.statuses[sha], v)
	s.echo(s.statusEvent(r.repo, v))
	return created(s.status(r.repo, v))
}

// combined shows the latest status of each context and what they come to.
func (s *Server) combined(r *request, sha string) reply {
	latest := map[string]*Status{}
	var names []string
	for _, v := range r.repo.statuses[sha] {
		if latest[v.Context] == nil {
			names = append(names, v.Context)
		}
		latest[v.Context] = v
	}
	// Any failure fails, else anything pending is pending. Nothing at all is
	// pending as well, which is easily mistaken for "still running".
	state := "success"
	if len(names) == 0 {
		state = "pending"
	}
	all := make([]*Status, len(names))
	for i, name := range names {
		all[i] = latest[name]
		switch {
		case all[i].State == "failure" || all[i].State == "error":
			state = "failure"
		case all[i].State == "pending" && state == "success":
			state = "pending"
		}
	}
	a := listing(s, r, all, func(v *Status) object {
		o := s.status(r.repo, v)
		delete(o, "creator") // which only the list of all statuses has
		return o
	})
	a.body = object{
		"state": state, "sha": sha, "total_count": len(all), "statuses": a.body, "repository": s.repository(r.repo),
		"commit_url": s.APIURL() + "repos/" + r.repo.FullName() + "/commits/" + sha,
	}
	return a
}

func (s *Server) status(r *Repo, v *Status) object {
	return object{
		"id": v.ID, "node_id": node("Status", v.ID), "state": v.State, "context": v.Context,
		"description": v.Description, "target_url": v.TargetURL, "creator": s.user(v.User),
		"created_at": stamp(v.CreatedAt), "updated_at": stamp(v.CreatedAt),
		"url": s.APIURL() + "repos/" + r.FullName() + "/statuses/" + v.SHA + "#" + strconv.FormatInt(v.ID, 10),
	}
}

func (s *Server) statusEvent(r *Repo, v *Status) event {
	body := s.envelope(r, v.User)
	for k, val := range s.status(r, v) {
		// The event is flat: the status's fields are next to the repository.
		if k != "url" && k != "node_id" && k != "creator" {
			body[k] = val
		}
	}
	body["sha"], body["name"] = v.SHA, r.FullName()
	branches := []object{}
	for _, name := range s.branchesAt(r, v.SHA) {
		branches = append(branches, object{"name": name, "commit": object{"sha": v.SHA}})
	}
	body["commit"], body["branches"] = object{"sha": v.SHA}, branches
	return s.encode("status", body)
}
