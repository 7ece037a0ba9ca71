package githubfake

func (s *Server) branchRoutes() {
	s.api("GET /repos/{o}/{r}/branches/{ref}", "contents:read", func(r *request) reply {
		all, err := s.branches(r.repo.dir)
		if err != nil {
			return broken(err)
		}
		name := r.PathValue("ref")
		if all[name] == "" {
			return fail(404, "Branch not found")
		}
		return ok(object{"name": name, "commit": object{"sha": all[name]}, "protected": false})
	})
}
