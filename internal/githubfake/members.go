package githubfake

import "strings"

// member is a member of an organisation.
type member struct {
	login  string
	emails []string
}

// AddMember adds a member to an organisation, which exists from its first member on. The e-mail addresses are those in
// the domains that the organisation has verified.
func (s *Server) AddMember(org, login string, emails ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.members == nil {
		s.members = map[string][]member{}
	}
	key := strings.ToLower(org)
	s.members[key] = append(s.members[key], member{login, append([]string{}, emails...)})
}

// organisationNode is an organisation in GraphQL. Only an App with the permission to read members sees the addresses.
func (s *Server) organisationNode(r *request, org string) (any, *graphqlError) {
	all, known := s.members[strings.ToLower(org)]
	if !known {
		return nil, notFound("Could not resolve to an Organization with the login of '%s'.", org)
	}
	var nodes []object
	for _, m := range all {
		node := s.actor(m.login)
		node["organizationVerifiedDomainEmails"] = resolve(func(args map[string]any) (any, *graphqlError) {
			switch of, _ := args["login"].(string); {
			case !r.who.may("members", "read"):
				return nil, &graphqlError{Type: "FORBIDDEN", Message: notByIntegration}
			case !strings.EqualFold(of, org):
				return []string{}, nil
			}
			return m.emails, nil
		})
		nodes = append(nodes, node)
	}
	return object{"__typename": "Organization", "login": org, "membersWithRole": connection(nodes)}, nil
}
