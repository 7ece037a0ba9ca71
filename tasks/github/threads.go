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

// maxThreadPages bounds how many pages of threads are read: fifty threads a page, fifty comments a thread.
const maxThreadPages = 10

// threadsQuery reads what REST lacks: the threads of a pull request, and whether they are resolved.
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

// thread is a conversation on a line of the diff.
type thread struct {
	ID         string `json:"id"`
	Resolved   bool   `json:"isResolved"`
	Path       string `json:"path"`
	Line       int    `json:"line"` // in the present diff; 0: no longer there
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

// actor is an account; it is empty if the account was deleted.
type actor struct {
	Kind  string `json:"__typename"`
	Login string `json:"login"`
}

// login returns the name as in REST, which adds a suffix for bots.
func (a actor) login() string {
	if a.Kind == "Bot" {
		return a.Login + "[bot]"
	}
	return a.Login
}

// threads reads the threads of a pull request: those of errand's findings, and those started by others.
func (s *Source) threads(ctx context.Context, gh *github.Client, o origin) (ours []postedFinding, others []thread, err error) {
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

// postedFinding is a thread that errand started with a finding.
type postedFinding struct {
	review.Thread
	mayResolve bool
}

// settledMark begins the comment with which errand ends one of its threads.
const settledMark = "<!-- errand:settled -->\n"

// finding returns the finding of one of errand's threads, and the state of the thread. Replies count if they are by
// author, who opened the pull request, or by people with a role in the repository.
func (t thread) finding(me, author string) (postedFinding, bool) {
	if len(t.Comments.Nodes) == 0 {
		return postedFinding{}, false
	}
	first := t.Comments.Nodes[0]
	id, ok := review.FindingOf(first.Body)
	if !ok || first.Author.login() != me {
		return postedFinding{}, false
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
	return postedFinding{Thread: f, mayResolve: t.MayResolve}, true
}

// observed converts threads for the ledger.
func observed(ours []postedFinding) []review.Thread {
	all := make([]review.Thread, len(ours))
	for i, t := range ours {
		all[i] = t.Thread
	}
	return all
}

// endThread writes in one of errand's threads why it is over, and resolves it. It skips what is done already.
func (r *report) endThread(ctx context.Context, t postedFinding, k review.Known) error {
	if t.Resolved {
		return nil
	}
	if !t.Ours {
		body := settledMark + "Fixed in " + hub.ShortSHA(r.origin.Head) + ".\n"
		if k.Status == review.Outdated {
			body = settledMark + "This no longer applies as of " + hub.ShortSHA(r.origin.Head) + ".\n"
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
