package githubfake

import "strings"

func (s *Server) repoRoutes() {
	s.api("GET /repos/{o}/{r}", "metadata:read", func(r *request) reply { return ok(s.repository(r.repo)) })
	s.api("GET /repos/{o}/{r}/collaborators/{u}/permission", "metadata:read", func(r *request) reply {
		login := r.PathValue("u")
		if strings.HasSuffix(login, "[bot]") && r.repo.permissions[strings.ToLower(login)] == "" {
			return fail(404, login+" is not a user")
		}
		level := s.permission(r.repo, login)
		return ok(object{"permission": level, "role_name": level, "user": s.user(login)})
	})
}

// SetPermission says what a user may do in a repository: "admin", "write",
// "read" or "none". Unset, the owner is admin and everybody else may read what
// is public. It panics for a repository that does not exist, as Fail does.
func (s *Server) SetPermission(repo, user, permission string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.mustRepo(repo)
	if err != nil {
		panic("githubfake: " + err.Error())
	}
	r.permissions[strings.ToLower(user)] = permission
	s.changed()
}

func (s *Server) permission(r *Repo, login string) string {
	switch set := r.permissions[strings.ToLower(login)]; {
	case set != "":
		return set
	case strings.EqualFold(login, r.owner):
		return "admin"
	case r.private:
		return "none"
	}
	return "read"
}

// repository is a repository as REST and webhooks show it.
func (s *Server) repository(r *Repo) object {
	visibility := "public"
	if r.private {
		visibility = "private"
	}
	api := s.APIURL() + "repos/" + r.FullName()
	return object{
		"id": r.id, "node_id": node("Repository", r.id), "name": r.name, "full_name": r.FullName(),
		"owner": s.user(r.owner), "private": r.private, "visibility": visibility, "fork": r.foreign,
		"url": api, "html_url": s.url + "/" + r.FullName(), "clone_url": r.CloneURL(),
		"pulls_url": api + "/pulls{/number}", "statuses_url": api + "/statuses/{sha}",
		"description": nil, "default_branch": "main", "archived": false, "disabled": false, "has_issues": true,
		"created_at": stamp(r.created), "updated_at": stamp(r.pushed), "pushed_at": stamp(r.pushed),
		"open_issues_count": s.openPulls(r), "topics": []string{}, "language": nil, "license": nil,
		"permissions": object{"admin": false, "push": !r.foreign, "pull": true},
	}
}

func (s *Server) openPulls(r *Repo) (n int) {
	for _, p := range r.pulls {
		if p.state == "open" {
			n++
		}
	}
	return n
}
