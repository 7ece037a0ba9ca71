package thread

import (
	"context"
	"fmt"
	"time"

	hub "github.com/errand-fleet/errand/forge/github"
)

// maxThreadPages bounds how many pages of threads are read: fifty threads a page, fifty comments a thread.
const maxThreadPages = 10

// threadsQuery reads what REST lacks: the threads of a pull request, and whether they are resolved.
const threadsQuery = `query($owner: String!, $name: String!, $number: Int!, $after: String) {
  repository(owner: $owner, name: $name) {
    pullRequest(number: $number) {
      author { __typename login }
      isCrossRepository
      reviewThreads(first: 50, after: $after) {
        pageInfo { hasNextPage endCursor }
        nodes {
          id isResolved resolvedBy { login } path line viewerCanResolve
          first: comments(first: 1) { nodes { reactions(first: 20, content: THUMBS_DOWN) { nodes { user { login } } } } }
          comments(first: 50) {
            nodes { databaseId body authorAssociation createdAt lastEditedAt author { __typename login } }
          }
        }
      }
    }
  }
}`

// LineThread is a conversation on a line of the diff.
type LineThread struct {
	ID         string  `json:"id"`
	Resolved   bool    `json:"isResolved"`
	ResolvedBy Account `json:"resolvedBy"`
	Path       string  `json:"path"`
	Line       int     `json:"line"` // in the present diff; 0 if the diff no longer contains it
	MayResolve bool    `json:"viewerCanResolve"`
	First      struct {
		Nodes []struct {
			Dislikes struct {
				Nodes []struct {
					User Account `json:"user"`
				} `json:"nodes"`
			} `json:"reactions"`
		} `json:"nodes"`
	} `json:"first"` // comment
	Comments struct {
		Nodes []LineComment `json:"nodes"`
	} `json:"comments"`
}

// LineComment is a comment on a line, as GraphQL returns it.
type LineComment struct {
	ID          int64     `json:"databaseId"`
	Body        string    `json:"body"`
	Created     time.Time `json:"createdAt"`
	Edited      time.Time `json:"lastEditedAt"` // zero: never
	Association string    `json:"authorAssociation"`
	Author      Account   `json:"author"`
}

// Account is an account; it is empty if the account was deleted.
type Account struct {
	Kind  string `json:"__typename"`
	Login string `json:"login"`
}

// Name returns the login as in REST, which adds a suffix for bots.
func (a Account) Name() string {
	if a.Kind == "Bot" {
		return a.Login + "[bot]"
	}
	return a.Login
}

// LineThreads reads the threads on lines of a pull request, and who opened it from a branch of its repository: "" if it
// comes from a fork, whose author is a stranger unless they have a role.
func (t Thread) LineThreads(ctx context.Context) (all []LineThread, author string, err error) {
	vars := map[string]any{"owner": t.Owner, "name": t.Name, "number": t.Number}
	for range maxThreadPages {
		var answer struct {
			Repository struct {
				PullRequest struct {
					Author        Account `json:"author"`
					Fork          bool    `json:"isCrossRepository"`
					ReviewThreads struct {
						Nodes    []LineThread `json:"nodes"`
						PageInfo struct {
							More bool   `json:"hasNextPage"`
							End  string `json:"endCursor"`
						} `json:"pageInfo"`
					} `json:"reviewThreads"`
				} `json:"pullRequest"`
			} `json:"repository"`
		}
		if err := hub.GraphQL(ctx, t.GH, threadsQuery, vars, &answer); err != nil {
			return nil, "", fmt.Errorf("read threads of %s: %w", t.Ref, err)
		}
		pr := answer.Repository.PullRequest
		if author = pr.Author.Name(); pr.Fork {
			author = ""
		}
		all = append(all, pr.ReviewThreads.Nodes...)
		if !pr.ReviewThreads.PageInfo.More {
			break
		}
		vars["after"] = pr.ReviewThreads.PageInfo.End
	}
	return all, author, nil
}

// Resolve resolves a thread on a line.
func (t Thread) Resolve(ctx context.Context, id string) error {
	const resolve = `mutation($id: ID!) { resolveReviewThread(input: {threadId: $id}) { thread { isResolved } } }`
	var answer struct{}
	if err := hub.GraphQL(ctx, t.GH, resolve, map[string]any{"id": id}, &answer); err != nil {
		return fmt.Errorf("resolve thread %s of %s: %w", id, t.Ref, err)
	}
	return nil
}
