package githubfake

import (
	"slices"
	"strconv"
)

// Reaction is one emoji by one user.
type Reaction struct {
	ID            int64
	User, Content string
}

// emoji are all reactions GitHub knows, in its names.
var emoji = []string{"+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes"}

// react answers 200 instead of 201 when the reaction is there already.
func (s *Server) react(r *request, to *[]Reaction) reply {
	var ask struct{ Content string }
	if a, good := decode(r, &ask); !good {
		return a
	}
	if !slices.Contains(emoji, ask.Content) {
		return unprocessable("Reaction", "content", "content is not included in the list")
	}
	for _, old := range *to {
		if old.User == r.who.login && old.Content == ask.Content {
			return ok(s.reaction(old))
		}
	}
	v := Reaction{ID: s.id(), User: r.who.login, Content: ask.Content}
	*to = append(*to, v)
	return created(s.reaction(v))
}

// unreact removes any user's reaction, as GitHub does for accounts that may
// write.
func (s *Server) unreact(r *request, from *[]Reaction) reply {
	id, _ := strconv.ParseInt(r.PathValue("reaction"), 10, 64)
	before := len(*from)
	*from = slices.DeleteFunc(*from, func(v Reaction) bool { return v.ID == id })
	if len(*from) == before {
		return fail(404, "Not Found")
	}
	return reply{status: 204}
}

func (s *Server) reaction(v Reaction) object {
	return object{"id": v.ID, "node_id": node("Reaction", v.ID), "user": s.user(v.User), "content": v.Content, "created_at": stamp(s.now())}
}

func tally(all []Reaction) object {
	o := object{"total_count": len(all)}
	for _, name := range emoji {
		o[name] = 0
	}
	for _, v := range all {
		o[v.Content] = o[v.Content].(int) + 1
	}
	return o
}
