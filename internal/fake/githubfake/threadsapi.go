package githubfake

import (
	"cmp"
	"fmt"
	"strings"
)

// queries are what can be asked.
func (s *Server) queries(r *request) object {
	return object{
		"__typename": "Query",
		"viewer":     s.actor(r.who.login),
		"repository": resolve(func(args map[string]any) (any, *graphqlError) {
			full := fmt.Sprintf("%s/%s", args["owner"], args["name"])
			repo := s.repos[strings.ToLower(full)]
			if repo == nil || !r.who.sees(repo) {
				return nil, notFound("Could not resolve to a Repository with the name '%s'.", full)
			}
			return object{
				"__typename": "Repository", "nameWithOwner": repo.FullName(),
				"pullRequest": resolve(func(args map[string]any) (any, *graphqlError) {
					number, _ := integer(args["number"])
					p := repo.pull(number)
					switch {
					case p == nil:
						return nil, notFound("Could not resolve to a PullRequest with the number of %d.", number)
					case !r.who.may("pull_requests", "read"):
						return nil, &graphqlError{Type: "FORBIDDEN", Message: notByIntegration}
					}
					return s.pullNode(r, p), nil
				}),
			}, nil
		}),
	}
}

func notFound(format string, args ...any) *graphqlError {
	return &graphqlError{Type: "NOT_FOUND", Message: fmt.Sprintf(format, args...)}
}

func (s *Server) pullNode(r *request, p *pull) object {
	var threads []object
	for _, c := range p.inline {
		if c.InReplyTo == 0 {
			threads = append(threads, s.threadNode(r, p, c))
		}
	}
	return object{
		"__typename": "PullRequest", "author": s.actor(p.user), "number": p.number, "headRefOid": p.headSHA,
		"isDraft": p.draft, "isCrossRepository": p.headRepo != p.repo, "reviewThreads": connection(threads),
	}
}

func (s *Server) threadNode(r *request, p *pull, root *ReviewComment) object {
	var comments []object
	for _, c := range p.conversation(root) {
		comments = append(comments, object{
			"__typename": "PullRequestReviewComment", "id": node("PullRequestReviewComment", c.ID), "databaseId": c.ID,
			"author": s.actor(c.User), "authorAssociation": s.association(p.repo, c.User), "body": c.Body,
			"createdAt": stamp(c.CreatedAt), "lastEditedAt": nil, "reactions": s.reactionNodes(c.Reactions),
		})
	}
	may := r.who.may("pull_requests", "write") && !p.repo.foreign
	return object{
		"__typename": "PullRequestReviewThread", "id": threadID(root), "isOutdated": root.Line == 0,
		"isResolved": root.resolvedBy != "", "resolvedBy": s.resolver(root),
		"path": root.Path, "line": orNull(root.Line), "startLine": orNull(root.StartLine),
		"originalLine": root.OriginalLine, "diffSide": root.Side, "viewerCanReply": may, "viewerCanResolve": may &&
			root.resolvedBy == "", "viewerCanUnresolve": may && root.resolvedBy != "", "comments": connection(comments),
	}
}

// resolver is who resolved a thread, or null.
func (s *Server) resolver(root *ReviewComment) any {
	if root.resolvedBy == "" {
		return nil
	}
	who := s.actor(root.resolvedBy)
	who["__typename"] = "User" // the type of the field, also for an App
	return who
}

// reactionNames are the reactions of REST that GraphQL calls otherwise than in capitals.
var reactionNames = map[string]string{"+1": "THUMBS_UP", "-1": "THUMBS_DOWN"}

// reactionNodes are the reactions to a comment, all or those of one content.
func (s *Server) reactionNodes(all []Reaction) resolve {
	return func(args map[string]any) (any, *graphqlError) {
		var nodes []object
		for _, v := range all {
			content := cmp.Or(reactionNames[v.Content], strings.ToUpper(v.Content))
			if want := args["content"]; want == nil || want == content {
				user := s.actor(v.User)
				user["__typename"] = "User"
				nodes = append(nodes, object{
					"__typename": "Reaction", "id": node("Reaction", v.ID), "content": content, "user": user,
				})
			}
		}
		return connection(nodes)(args)
	}
}

// actor is an account as GraphQL shows it: a bot's login is without the
// "[bot]" that REST puts behind it.
func (s *Server) actor(login string) object {
	kind := "User"
	if name, bot := strings.CutSuffix(login, "[bot]"); bot {
		login, kind = name, "Bot"
	}
	return object{"__typename": kind, "login": login, "id": s.user(login)["node_id"]}
}

// mutations are what can be done.
func (s *Server) mutations(r *request) object {
	turn := func(name string, resolved bool) resolve {
		return func(args map[string]any) (any, *graphqlError) {
			input, _ := args["input"].(map[string]any)
			id, _ := input["threadId"].(string)
			p, root := s.threadByID(r, id)
			switch {
			case root == nil:
				return nil, notFound("Could not resolve to a node with the global id of '%s'", id)
			case !r.who.may("pull_requests", "write") || p.repo.foreign:
				return nil, &graphqlError{Type: "FORBIDDEN", Message: notByIntegration}
			}
			// Again is no error, and changes nothing.
			if resolved != (root.resolvedBy != "") {
				s.echo(s.turnThread(p, root, r.who.login, resolved))
			}
			return object{
				"__typename": name, "clientMutationId": input["clientMutationId"], "thread": s.threadNode(r, p, root),
			}, nil
		}
	}
	return object{
		"__typename":            "Mutation",
		"removeReaction":        s.removeReaction(r),
		"resolveReviewThread":   turn("ResolveReviewThreadPayload", true),
		"unresolveReviewThread": turn("UnresolveReviewThreadPayload", false),
		"markPullRequestReadyForReview": resolve(func(args map[string]any) (any, *graphqlError) {
			input, _ := args["input"].(map[string]any)
			id, _ := input["pullRequestId"].(string)
			p := s.pullByNode(r, id)
			switch {
			case p == nil:
				return nil, notFound("Could not resolve to a node with the global id of '%s'", id)
			case !r.who.may("pull_requests", "write") || p.repo.foreign:
				return nil, &graphqlError{Type: "FORBIDDEN", Message: notByIntegration}
			case p.state != "open":
				return nil, &graphqlError{Type: "UNPROCESSABLE", Message: "Pull request is closed"}
			}
			if p.draft {
				s.echo(s.turn(p, "ready_for_review", r.who.login))
			}
			return object{
				"__typename": "MarkPullRequestReadyForReviewPayload", "clientMutationId": input["clientMutationId"],
				"pullRequest": s.pullNode(r, p),
			}, nil
		}),
	}
}

func (s *Server) pullByNode(r *request, id string) *pull {
	for _, repo := range s.repos {
		for _, p := range repo.pulls {
			if node("PullRequest", p.id) == id && r.who.sees(repo) {
				return p
			}
		}
	}
	return nil
}

func (s *Server) threadByID(r *request, id string) (*pull, *ReviewComment) {
	for _, repo := range s.repos {
		for _, p := range repo.pulls {
			for _, c := range p.inline {
				if c.InReplyTo == 0 && threadID(c) == id && r.who.sees(repo) {
					return p, c
				}
			}
		}
	}
	return nil, nil
}
