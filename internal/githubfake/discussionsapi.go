package githubfake

// discussionQuery answers the field discussion of a repository.
func (s *Server) discussionQuery(r *request, repo *Repo) resolve {
	return func(args map[string]any) (any, *graphqlError) {
		number, _ := integer(args["number"])
		switch d := repo.discussion(number); {
		case !r.who.may("discussions", "read"):
			return nil, forbidden()
		case d == nil:
			return nil, notFound("Could not resolve to a Discussion with the number of %d.", number)
		default:
			return s.discussionNode(d), nil
		}
	}
}

func forbidden() *graphqlError { return &graphqlError{Type: "FORBIDDEN", Message: notByIntegration} }

func (s *Server) discussionNode(d *discussion) object {
	var comments []object
	for _, c := range d.comments {
		if c.Parent == 0 {
			comments = append(comments, s.discussionCommentNode(c))
		}
	}
	return object{
		"__typename": "Discussion", "id": node("Discussion", d.id), "databaseId": d.id, "number": d.number,
		"title": d.title, "body": d.body, "url": s.discussionURL(d), "author": s.actor(d.user),
		"authorAssociation": s.association(d.repo, d.user), "category": object{
			"__typename": "DiscussionCategory", "id": node("DiscussionCategory", 1), "name": d.category,
		},
		"closed": !d.closed.IsZero(), "closedAt": stamp(d.closed), "locked": d.locked, "createdAt": stamp(d.created),
		"lastEditedAt": stamp(d.edited), "comments": connection(comments),
	}
}

func (s *Server) discussionCommentNode(c *DiscussionComment) object {
	var replies []object
	for _, one := range c.on.comments {
		if one.Parent == c.ID {
			replies = append(replies, s.discussionCommentNode(one))
		}
	}
	return object{
		"__typename": "DiscussionComment", "id": node("DiscussionComment", c.ID), "databaseId": c.ID,
		"url": s.discussionCommentURL(c), "author": s.actor(c.User),
		"authorAssociation": s.association(c.on.repo, c.User), "body": c.Body, "createdAt": stamp(c.CreatedAt),
		"lastEditedAt": stamp(c.Edited), "replies": connection(replies),
	}
}

// discussionByNode finds a discussion, or a comment in one, by its node ID.
func (s *Server) discussionByNode(r *request, id any) (*discussion, *DiscussionComment) {
	for _, repo := range s.repos {
		for _, d := range repo.discussions {
			if d.gone || !r.who.sees(repo) {
				continue
			}
			if node("Discussion", d.id) == id {
				return d, nil
			}
			for _, c := range d.comments {
				if node("DiscussionComment", c.ID) == id {
					return d, c
				}
			}
		}
	}
	return nil, nil
}

// mayDiscuss refuses what an App without the permission may not do, as it does for what cannot be found.
func (s *Server) mayDiscuss(r *request, found bool, id any) *graphqlError {
	switch {
	case !found:
		return notFound("Could not resolve to a node with the global id of '%s'", id)
	case !r.who.may("discussions", "write"):
		return forbidden()
	}
	return nil
}

func (s *Server) addDiscussionComment(r *request) resolve {
	return func(args map[string]any) (any, *graphqlError) {
		input, _ := args["input"].(map[string]any)
		d, c := s.discussionByNode(r, input["discussionId"])
		if wrong := s.mayDiscuss(r, d != nil && c == nil, input["discussionId"]); wrong != nil {
			return nil, wrong
		}
		body, _ := input["body"].(string)
		parent := int64(0)
		if to := input["replyToId"]; to != nil {
			on, c := s.discussionByNode(r, to)
			switch {
			case c == nil || on != d:
				return nil, notFound("Could not resolve to a node with the global id of '%s'", to)
			case c.Parent != 0:
				return nil, &graphqlError{
					Type: "UNPROCESSABLE", Message: "Parent comment is already in a thread, cannot reply to it",
				}
			}
			parent = c.ID
		}
		switch {
		case body == "":
			return nil, &graphqlError{Type: "UNPROCESSABLE", Message: "Body cannot be blank"}
		case tooLong(body):
			return nil, &graphqlError{Type: "UNPROCESSABLE", Message: bodyTooLong}
		case d.locked && !s.writes(r):
			return nil, forbidden()
		}
		made := s.addToDiscussion(d, parent, r.who.login, body)
		s.echo(s.discussionCommentEvent("created", made, r.who.login, nil))
		return object{
			"__typename": "AddDiscussionCommentPayload", "clientMutationId": input["clientMutationId"],
			"comment": s.discussionCommentNode(made),
		}, nil
	}
}

func (s *Server) updateDiscussionComment(r *request) resolve {
	return func(args map[string]any) (any, *graphqlError) {
		input, _ := args["input"].(map[string]any)
		_, c := s.discussionByNode(r, input["commentId"])
		if wrong := s.mayDiscuss(r, c != nil, input["commentId"]); wrong != nil {
			return nil, wrong
		}
		changes := object{"body": object{"from": c.Body}}
		c.Body, _ = input["body"].(string)
		c.Edited, c.Edits = s.now(), c.Edits+1
		s.echo(s.discussionCommentEvent("edited", c, r.who.login, object{"changes": changes}))
		return object{
			"__typename": "UpdateDiscussionCommentPayload", "clientMutationId": input["clientMutationId"],
			"comment": s.discussionCommentNode(c),
		}, nil
	}
}
