package githubfake

import (
	"context"
	"fmt"
	"slices"
)

// Thread is a conversation at a line of the diff. REST does not show it.
type Thread struct {
	ID         string // node ID
	Comment    int64  // that began it
	Path       string
	Line       int // 0 when it is outdated
	ResolvedBy string
	Comments   []ReviewComment
}

// Threads returns the conversations of a pull request, oldest first.
func (s *Server) Threads(repo string, number int) []Thread {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.mustPull(repo, number)
	if err != nil {
		return nil
	}
	var out []Thread
	for _, c := range p.inline {
		if c.InReplyTo != 0 {
			continue
		}
		t := Thread{ID: threadID(c), Comment: c.ID, Path: c.Path, Line: c.Line, ResolvedBy: c.resolvedBy}
		for _, one := range p.conversation(c) {
			t.Comments = append(t.Comments, *one)
		}
		out = append(out, t)
	}
	return out
}

func threadID(root *ReviewComment) string { return "PRRT_" + node("PullRequestReviewThread", root.ID) }

// conversation is a comment with all replies to it.
func (p *pull) conversation(root *ReviewComment) []*ReviewComment {
	return slices.DeleteFunc(slices.Clone(p.inline), func(c *ReviewComment) bool {
		return c != root && c.InReplyTo != root.ID
	})
}

// ReplyThread writes into a thread as a person would and delivers it. comment
// is the one that began it.
func (s *Server) ReplyThread(ctx context.Context, repo string, number int, comment int64,
	user, body string,
) (id int64, err error) {
	s.mu.Lock()
	p, root, err := s.mustThread(repo, number, comment)
	if err != nil {
		s.mu.Unlock()
		return 0, fmt.Errorf("reply: %w", err)
	}
	c := s.addReply(p, root, user, body)
	e := s.inlineEvent(p, c)
	s.changed()
	s.mu.Unlock()
	return c.ID, s.deliver(ctx, e)
}

// ResolveThread does what a person does with the button below a thread, and
// delivers it.
func (s *Server) ResolveThread(ctx context.Context, repo string, number int, comment int64, user string,
	resolved bool,
) error {
	s.mu.Lock()
	p, root, err := s.mustThread(repo, number, comment)
	if err != nil {
		s.mu.Unlock()
		return fmt.Errorf("resolve: %w", err)
	}
	e := s.turnThread(p, root, user, resolved)
	s.changed()
	s.mu.Unlock()
	return s.deliver(ctx, e)
}

// ReactToThread does what a person does with the emoji below the comment that began a thread. GitHub sends no event.
func (s *Server) ReactToThread(repo string, number int, comment int64, user, content string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, root, err := s.mustThread(repo, number, comment)
	if err != nil {
		return fmt.Errorf("react: %w", err)
	}
	if !slices.Contains(emoji, content) {
		return fmt.Errorf("react: GitHub has no reaction %q", content)
	}
	root.Reactions = append(root.Reactions, Reaction{ID: s.id(), User: user, Content: content})
	s.changed()
	return nil
}

func (s *Server) mustThread(repo string, number int, comment int64) (*pull, *ReviewComment, error) {
	p, err := s.mustPull(repo, number)
	if err != nil {
		return nil, nil, err
	}
	i := slices.IndexFunc(p.inline, func(c *ReviewComment) bool { return c.ID == comment && c.InReplyTo == 0 })
	if i < 0 {
		return nil, nil, fmt.Errorf("no thread of comment %d in %s#%d", comment, repo, number)
	}
	return p, p.inline[i], nil
}

func (s *Server) addReply(p *pull, root *ReviewComment, user, body string) *ReviewComment {
	c := *root
	c.ID, c.InReplyTo, c.User, c.Body, c.CreatedAt, c.resolvedBy = s.id(), root.ID, user, body, s.now(), ""
	c.Reactions = nil
	p.inline = append(p.inline, &c)
	return &c
}

func (s *Server) turnThread(p *pull, root *ReviewComment, user string, resolved bool) event {
	body := s.envelope(p.repo, user)
	body["action"], root.resolvedBy = "unresolved", ""
	if resolved {
		body["action"], root.resolvedBy = "resolved", user
	}
	var comments []object
	for _, c := range p.conversation(root) {
		comments = append(comments, s.inlineJSON(p, c))
	}
	body["thread"], body["pull_request"] = object{"node_id": threadID(root), "comments": comments}, s.pullJSON(p)
	return s.encode("pull_request_review_thread", body)
}

func (s *Server) inlineEvent(p *pull, c *ReviewComment) event {
	body := s.envelope(p.repo, c.User)
	body["action"], body["comment"], body["pull_request"] = "created", s.inlineJSON(p, c), s.pullJSON(p)
	return s.encode("pull_request_review_comment", body)
}
