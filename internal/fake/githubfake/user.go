package githubfake

import (
	"encoding/base64"
	"fmt"
	"hash/fnv"
	"strings"
)

// user is an account; its id depends on the name alone.
func (s *Server) user(login string) object {
	// Accounts are never registered: every named account exists.
	h := fnv.New32a()
	_, _ = h.Write([]byte(strings.ToLower(login)))
	id := int64(h.Sum32())
	kind := "User"
	switch {
	case strings.HasSuffix(login, "[bot]"):
		kind = "Bot"
	case s.owns(login):
		kind = "Organization"
	}
	return object{
		"login": login, "id": id, "node_id": node("User", id), "type": kind, "site_admin": false, "gravatar_id": "",
		"url": s.APIURL() + "users/" + login, "html_url": s.url + "/" + login,
		"avatar_url": s.url + "/avatars/" + login,
	}
}

// owns reports whether an account owns a repository that is no fork: only
// organizations do here.
func (s *Server) owns(login string) bool {
	for _, r := range s.repos {
		if !r.foreign && strings.EqualFold(r.owner, login) {
			return true
		}
	}
	return false
}

// association is what an author is to a repository, in GitHub's words.
func (s *Server) association(r *Repo, login string) string {
	switch s.permission(r, login) {
	case "admin":
		return "OWNER"
	case "write":
		return "COLLABORATOR"
	case "read":
		return "CONTRIBUTOR"
	}
	return "NONE"
}

func node(kind string, id int64) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%s_%d", kind, id))
}
