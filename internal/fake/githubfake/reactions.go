package githubfake

import (
	"slices"
	"strings"
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

func (s *Server) reaction(v Reaction) object {
	return object{
		"id": v.ID, "node_id": node("Reaction", v.ID), "user": s.user(v.User), "content": v.Content,
		"created_at": stamp(s.now()),
	}
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

// issueReactions returns the reactions to an issue or to a comment on one, or nil.
func (s *Server) issueReactions(r *request, id any) *[]Reaction {
	for _, repo := range s.repos {
		if !r.who.sees(repo) {
			continue
		}
		for _, i := range repo.conversations() {
			if node("Issue", i.id) == id {
				return &i.reactions
			}
			for _, c := range i.comments {
				if node("IssueComment", c.ID) == id {
					return &c.Reactions
				}
			}
		}
	}
	return nil
}

// reactionOf returns the reaction of the caller with this content, in GraphQL's name, without its ID.
func reactionOf(r *request, content string) Reaction {
	for name, other := range reactionNames {
		if other == content {
			return Reaction{User: r.who.login, Content: name}
		}
	}
	return Reaction{User: r.who.login, Content: strings.ToLower(content)}
}

// removeReaction removes the caller's own reaction.
func (s *Server) removeReaction(r *request) resolve {
	return func(args map[string]any) (any, *graphqlError) {
		input, _ := args["input"].(map[string]any)
		id := input["subjectId"]
		from := s.issueReactions(r, id)
		switch {
		case from == nil:
			return nil, notFound("Could not resolve to a node with the global id of '%s'", id)
		case !r.who.may("issues", "write"):
			return nil, &graphqlError{Type: "FORBIDDEN", Message: notByIntegration}
		}
		content, _ := input["content"].(string)
		v := reactionOf(r, content)
		for i, old := range *from {
			if old.User == v.User && old.Content == v.Content {
				*from = slices.Delete(*from, i, i+1)
				user := s.actor(v.User)
				user["__typename"] = "User"
				return object{
					"__typename": "RemoveReactionPayload", "clientMutationId": input["clientMutationId"],
					"reaction": object{
						"__typename": "Reaction", "id": node("Reaction", old.ID), "content": input["content"], "user": user,
					},
				}, nil
			}
		}
		return nil, &graphqlError{Type: "UNPROCESSABLE", Message: "Viewer has not reacted with " + content}
	}
}
