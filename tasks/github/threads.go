package github

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"

	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/tasks/github/review"
)

// maxThreadPages bounds how many threads of a pull request are read, fifty a page, and fifty comments of each.
const maxThreadPages = 10

// threadsQuery reads what REST does not tell: which threads there are, and whether they are resolved.
const threadsQuery = `query($owner: String!, $name: String!, $number: Int!, $after: String) {
  repository(owner: $owner, name: $name) {
    pullRequest(number: $number) {
      author { __typename login }
      reviewThreads(first: 50, after: $after) {
        pageInfo { hasNextPage endCursor }
        nodes {
          id isResolved path line viewerCanResolve
          comments(first: 50) {
            nodes { databaseId body authorAssociation createdAt lastEditedAt author { __typename login } }
          }
        }
      }
    }
  }
}`

// thread is a conversation at a line of the diff.
type thread struct {
	ID         string `json:"id"`
	Resolved   bool   `json:"isResolved"`
	Path       string `json:"path"`
	Line       int    `json:"line"` // in the present diff; 0: it is not there any more
	MayResolve bool   `json:"viewerCanResolve"`
	Comments   struct {
		Nodes []threadComment `json:"nodes"`
	} `json:"comments"`
}

type threadComment struct {
	ID          int64      `json:"databaseId"`
	Body        string     `json:"body"`
	Association string     `json:"authorAssociation"`
	Created     time.Time  `json:"createdAt"`
	Edited      *time.Time `json:"lastEditedAt"`
	Author      actor      `json:"author"`
}

// actor is an account; it is empty where that was deleted.
type actor struct {
	Kind  string `json:"__typename"`
	Login string `json:"login"`
}

// login is the name as REST has it, which puts something behind a bot's.
func (a actor) login() string {
	if a.Kind == "Bot" {
		return a.Login + "[bot]"
	}
	return a.Login
}

// threads reads the threads of a pull request: those about findings of ours, and those that others have begun.
func (s *Source) threads(ctx context.Context, gh *github.Client, o origin) (ours []told, others []thread, err error) {
	me, err := s.forge.Login(ctx)
	if err != nil {
		return nil, nil, err
	}
	owner, name := o.path()
	vars := map[string]any{"owner": owner, "name": name, "number": o.Number}
	for range maxThreadPages {
		var answer struct {
			Repository struct {
				PullRequest struct {
					Author        actor `json:"author"`
					ReviewThreads struct {
						Nodes    []thread `json:"nodes"`
						PageInfo struct {
							More bool   `json:"hasNextPage"`
							End  string `json:"endCursor"`
						} `json:"pageInfo"`
					} `json:"reviewThreads"`
				} `json:"pullRequest"`
			} `json:"repository"`
		}
		if err := hub.GraphQL(ctx, gh, threadsQuery, vars, &answer); err != nil {
			return nil, nil, fmt.Errorf("read threads of %s: %w", o, err)
		}
		pr := answer.Repository.PullRequest
		for _, t := range pr.ReviewThreads.Nodes {
			if f, ok := t.finding(me, pr.Author.login()); ok {
				ours = append(ours, f)
			} else if len(t.Comments.Nodes) > 0 {
				others = append(others, t)
			}
		}
		if !pr.ReviewThreads.PageInfo.More {
			break
		}
		vars["after"] = pr.ReviewThreads.PageInfo.End
	}
	return ours, others, nil
}

// told is a thread that began with a finding of ours.
type told struct {
	review.Thread
	mayResolve bool
}

// settledMark begins the comment with which we end a thread of ours.
const settledMark = "<!-- errand:settled -->\n"

// finding reports which finding of ours a thread is about, and what has become of the thread. author is who opened the pull request: what he
// replies counts, as does what those reply who have a say in the repository.
func (t thread) finding(me, author string) (told, bool) {
	if len(t.Comments.Nodes) == 0 {
		return told{}, false
	}
	first := t.Comments.Nodes[0]
	id, ok := review.FindingOf(first.Body)
	if !ok || first.Author.login() != me {
		return told{}, false
	}
	f := review.Thread{ID: t.ID, Comment: first.ID, Finding: id, Path: t.Path, Line: t.Line, Text: first.Body, Resolved: t.Resolved}
	for _, c := range t.Comments.Nodes[1:] {
		switch who := c.Author.login(); {
		case who == me:
			f.Ours = f.Ours || strings.HasPrefix(c.Body, settledMark)
		case c.Author.Kind == "User" && (who == author || slices.Contains([]string{"OWNER", "MEMBER", "COLLABORATOR"}, c.Association)):
			f.Answered = true
		}
	}
	return told{Thread: f, mayResolve: t.MayResolve}, true
}

// observed is what the ledger is told of threads.
func observed(ours []told) []review.Thread {
	all := make([]review.Thread, len(ours))
	for i, t := range ours {
		all[i] = t.Thread
	}
	return all
}

// endThread says in a thread of ours why it is over, and resolves it. What is done already is left.
func (r *report) endThread(ctx context.Context, t told, k review.Known) error {
	if t.Resolved {
		return nil
	}
	if !t.Ours {
		body := settledMark + "Fixed in " + hub.ShortSHA(r.origin.Head) + ".\n"
		if k.Status == review.Outdated {
			body = settledMark + "This does not apply any more, as of " + hub.ShortSHA(r.origin.Head) + ".\n"
		}
		owner, name := r.origin.path()
		if _, _, err := r.gh.PullRequests.CreateCommentInReplyTo(ctx, owner, name, r.origin.Number, body, t.Comment); err != nil {
			return fmt.Errorf("reply to comment %d of %s: %w", t.Comment, r.origin, err)
		}
	}
	if !t.mayResolve {
		return nil
	}
	const resolve = `mutation($id: ID!) { resolveReviewThread(input: {threadId: $id}) { thread { isResolved } } }`
	var answer struct{}
	if err := hub.GraphQL(ctx, r.gh, resolve, map[string]any{"id": t.ID}, &answer); err != nil {
		return fmt.Errorf("resolve thread %s of %s: %w", t.ID, r.origin, err)
	}
	return nil
}
