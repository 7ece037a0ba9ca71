package githubfake

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Review is one review of a pull request.
type Review struct {
	ID          int64
	User, Body  string
	State       string // COMMENTED, APPROVED, CHANGES_REQUESTED or PENDING
	CommitID    string
	SubmittedAt time.Time
}

// reviewStates maps what a client asks for to what becomes of it.
var reviewStates = map[string]string{
	"COMMENT": "COMMENTED", "APPROVE": "APPROVED", "REQUEST_CHANGES": "CHANGES_REQUESTED", "": "PENDING",
}

// Reviews returns the reviews of a pull request, oldest first.
func (s *Server) Reviews(repo string, number int) []Review {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.mustPull(repo, number)
	if err != nil {
		return nil
	}
	var out []Review
	for _, v := range p.reviews {
		out = append(out, *v)
	}
	return out
}

// Review submits a review as a person would, with what he says on lines, and
// delivers it: each of these, and then the review. verdict is COMMENT, APPROVE
// or REQUEST_CHANGES.
func (s *Server) Review(ctx context.Context, repo string, number int, user, verdict, body string,
	lines ...Line,
) (id int64, err error) {
	s.mu.Lock()
	p, err := s.mustPull(repo, number)
	if err == nil && (verdict == "" || reviewStates[verdict] == "") {
		err = errors.New(verdict + " is no verdict")
	}
	asks := make([]inlineAsk, len(lines))
	for i, l := range lines {
		asks[i] = l.ask()
		if err != nil {
			break
		}
		if problem := asks[i].check(p.files); problem != "" {
			err = fmt.Errorf("%s:%d: %s", l.Path, l.Line, problem)
		}
	}
	if err != nil {
		s.mu.Unlock()
		return 0, fmt.Errorf("review: %w", err)
	}
	v := s.addReview(p, user, verdict, body, p.headSHA)
	var events []event
	for _, a := range asks {
		events = append(events, s.inlineEvent(p, s.addInline(p, v, a)))
	}
	events = append(events, s.reviewEvent(p, v))
	s.changed()
	s.mu.Unlock()
	return v.ID, s.deliver(ctx, events...)
}

func (s *Server) addReview(p *pull, user, verdict, body, commit string) *Review {
	v := &Review{
		ID: s.id(), User: user, Body: body, State: reviewStates[verdict], CommitID: commit, SubmittedAt: s.now(),
	}
	p.reviews = append(p.reviews, v)
	p.updated = s.now()
	return v
}

func (s *Server) reviewRoutes() {
	const read, write = "pull_requests:read", "pull_requests:write"
	s.api("POST /repos/{o}/{r}/pulls/{n}/reviews", write, s.createReview)
	s.api("GET /repos/{o}/{r}/pulls/{n}/reviews", read, func(r *request) reply {
		return listing(s, r, r.pull.reviews, func(v *Review) object { return s.review(r.pull, v) })
	})
	s.api("GET /repos/{o}/{r}/pulls/{n}/reviews/{id}/comments", read, func(r *request) reply {
		return s.listInline(r, func(c *ReviewComment) bool {
			return strconv.FormatInt(c.ReviewID, 10) == r.PathValue("id")
		})
	})
	s.api("GET /repos/{o}/{r}/pulls/{n}/comments", read, func(r *request) reply {
		return s.listInline(r, func(*ReviewComment) bool { return true })
	})
	s.api("GET /repos/{o}/{r}/pulls/comments", read, func(r *request) reply {
		type spot struct {
			p *pull
			c *ReviewComment
		}
		var some []spot
		since := sinceOf(r)
		for _, p := range r.repo.pulls {
			for _, c := range p.inline {
				if !c.CreatedAt.Before(since) {
					some = append(some, spot{p, c})
				}
			}
		}
		return listing(s, r, some, func(at spot) object { return s.inlineJSON(at.p, at.c) })
	})
	s.api("POST /repos/{o}/{r}/pulls/{n}/comments/{id}/replies", write, s.replyInline)
}

// createReview is all or nothing: one comment outside the diff refuses the
// whole review, and the answer does not say which.
func (s *Server) createReview(r *request) reply {
	var ask struct {
		CommitID string `json:"commit_id"`
		Body     string `json:"body"`
		Event    string `json:"event"`
		Comments []inlineAsk
	}
	if a, good := decode(r, &ask); !good {
		return a
	}
	p := r.pull
	_, known := reviewStates[ask.Event]
	files, refused := s.reviewed(p, &ask.CommitID)
	switch {
	case !known:
		return unprocessable("PullRequestReview", "event",
			"Variable $event of type PullRequestReviewEvent was provided invalid value")
	case refused != "":
		return invalid("Unprocessable Entity", refused)
	case tooLong(ask.Body):
		return invalid("Unprocessable Entity", bodyTooLong)
	case ask.Body == "" && (len(ask.Comments) == 0 && ask.Event == "COMMENT" || ask.Event == "REQUEST_CHANGES"):
		return invalid("Unprocessable Entity", "Body can't be blank")
	}
	for i := range ask.Comments {
		if problem := ask.Comments[i].check(files); problem != "" {
			return invalid("Unprocessable Entity", problem)
		}
	}
	// Nothing is written before this line.
	v := s.addReview(p, r.who.login, ask.Event, ask.Body, ask.CommitID)
	var events []event
	for _, c := range ask.Comments {
		events = append(events, s.inlineEvent(p, s.addInline(p, v, c)))
	}
	// Without an event the review is a draft that only its author sees.
	if v.State != "PENDING" {
		s.echo(append(events, s.reviewEvent(p, v))...)
	}
	return ok(s.review(p, v)) // 200: here GitHub does not say 201
}

// reviewed returns the diff a review is about: the head's, or an older
// commit's of the same pull request.
func (s *Server) reviewed(p *pull, commit *string) (files []fileDiff, refused string) {
	if *commit == "" || *commit == p.headSHA {
		*commit = p.headSHA
		return p.files, ""
	}
	commits, err := s.commits(p.repo.dir, p.baseSHA, p.headSHA)
	if err != nil || !slices.Contains(commits, *commit) {
		return nil, "The commit_id is not part of the pull request"
	}
	if files, err = s.files(p.repo.dir, p.baseSHA, *commit); err != nil {
		return nil, err.Error()
	}
	return files, ""
}

func (s *Server) review(p *pull, v *Review) object {
	return object{
		"id": v.ID, "node_id": node("PullRequestReview", v.ID), "user": s.user(v.User), "body": v.Body,
		"state": v.State, "commit_id": v.CommitID, "submitted_at": stamp(v.SubmittedAt),
		"author_association": s.association(p.repo, v.User),
		"html_url": fmt.Sprintf("%s/%s/pull/%d#pullrequestreview-%d", s.url, p.repo.FullName(),
			p.number, v.ID), "pull_request_url": fmt.Sprintf("%srepos/%s/pulls/%d", s.APIURL(),
			p.repo.FullName(), p.number),
	}
}

// reviewEvent writes the state in lower case: webhooks do, REST does not.
func (s *Server) reviewEvent(p *pull, v *Review) event {
	body := s.envelope(p.repo, v.User)
	review := s.review(p, v)
	review["state"] = strings.ToLower(v.State)
	body["action"], body["review"], body["pull_request"] = "submitted", review, s.pullJSON(p)
	return s.encode("pull_request_review", body)
}
