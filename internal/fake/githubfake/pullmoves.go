package githubfake

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// PushPR commits on the head of a pull request as its author and delivers
// "synchronize". No files make an empty commit: a new head, the same diff.
func (s *Server) PushPR(ctx context.Context, repo string, number int, files map[string]string) (sha string, err error) {
	s.mu.Lock()
	p, err := s.mustPull(repo, number)
	if err == nil && p.headRepo == nil {
		err = fmt.Errorf("%s#%d: its fork was deleted", repo, number)
	}
	if err != nil {
		s.mu.Unlock()
		return "", fmt.Errorf("push: %w", err)
	}
	// These never change but for the fork, and move takes the locks in order.
	head, branch, user := p.headRepo, p.head, p.user
	s.mu.Unlock()
	events, sha, err := head.move(branch, "", files, "Update "+branch, user)
	if err != nil {
		return "", fmt.Errorf("push %s#%d: %w", repo, number, err)
	}
	return sha, s.deliver(ctx, events...)
}

// follow lets everything that hangs on a branch follow its move, and returns
// the webhooks of it: the push itself, and a synchronize of each pull request.
// before and after are "" for a branch made or deleted.
func (s *Server) follow(r *Repo, branch, before, after, user string) ([]event, error) {
	r.pushed = s.now()
	var events []event
	if !r.foreign {
		events = append(events, s.pushEvent(r, branch, before, after, user))
	}
	for _, repo := range s.repos {
		for _, p := range repo.pulls {
			// The sha is the same when OpenPR or move have been here already.
			if p.headRepo != r || p.head != branch || p.state != "open" || p.headSHA == after {
				continue
			}
			if after == "" {
				// GitHub closes a pull request whose branch is deleted.
				events = append(events, s.turn(p, "closed", user))
				continue
			}
			old := p.headSHA
			if err := s.refresh(p); err != nil {
				return nil, err
			}
			s.outdate(p)
			events = append(events, s.pullEvent("synchronize", p, user, object{"before": old, "after": after}))
		}
	}
	return events, nil
}

// RetargetPR gives a pull request another base, as its author does, and delivers
// "edited".
func (s *Server) RetargetPR(ctx context.Context, repo string, number int, base string) error {
	s.mu.Lock()
	p, err := s.mustPull(repo, number)
	var old object
	if err == nil {
		old, err = s.retarget(p, base)
	}
	if err != nil {
		s.mu.Unlock()
		return fmt.Errorf("retarget: %w", err)
	}
	p.updated = s.now()
	e := s.pullEvent("edited", p, p.user, object{"changes": object{"base": old}})
	s.changed()
	s.mu.Unlock()
	return s.deliver(ctx, e)
}

// retarget changes the base of a pull request, and returns the old one as
// "edited" reports it. The head did not move, but what is between base and head
// did.
func (s *Server) retarget(p *pull, base string) (old object, err error) {
	sha := s.resolve(p.repo.dir, base)
	if sha == "" {
		return nil, fmt.Errorf("no branch %s", base)
	}
	old = object{"ref": object{"from": p.base}, "sha": object{"from": p.baseSHA}}
	p.base, p.baseSHA = base, sha
	return old, s.count(p)
}

// ChangePR does what people do to a pull request and delivers it. action is
// "closed", "merged" (a real merge; delivered as closed), "reopened",
// "converted_to_draft" or "ready_for_review".
func (s *Server) ChangePR(ctx context.Context, repo string, number int, action, user string) error {
	events, err := s.changePR(repo, number, action, user)
	if err != nil {
		return fmt.Errorf("%s %s#%d: %w", action, repo, number, err)
	}
	return s.deliver(ctx, events...)
}

func (s *Server) changePR(repo string, number int, action, user string) ([]event, error) {
	s.mu.Lock()
	p, err := s.mustPull(repo, number)
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	p.repo.pushing.Lock()
	defer p.repo.pushing.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.changed()
	switch action {
	case "closed", "reopened", "converted_to_draft", "ready_for_review":
		return []event{s.turn(p, action, user)}, nil
	case "merged":
		before, after, err := s.merge(p)
		if err != nil {
			return nil, err
		}
		p.merged = true
		// Closed first: the base branch of this one is the head of others.
		closed := s.turn(p, "closed", user)
		events, err := s.follow(p.repo, p.base, before, after, user)
		return append(events, closed), err
	}
	return nil, errors.New("not an action")
}

// turn changes the state of a pull request.
func (s *Server) turn(p *pull, action, user string) event {
	p.updated = s.now()
	switch action {
	case "closed":
		p.state, p.closed = "closed", s.now()
	case "reopened":
		p.state, p.closed = "open", time.Time{}
	case "converted_to_draft":
		p.draft = true
	case "ready_for_review":
		p.draft = false
	}
	return s.pullEvent(action, p, user, nil)
}

// merge makes the merge commit on the base branch.
func (s *Server) merge(p *pull) (before, after string, err error) {
	before = s.resolve(p.repo.dir, p.base)
	tree, err := s.git(p.repo.dir, "", "merge-tree", "--write-tree", "--no-messages", before, p.headSHA)
	if err != nil {
		return "", "", err
	}
	msg := fmt.Sprintf("Merge pull request #%d from %s", p.number, p.head)
	commit, err := s.git(p.repo.dir, "", "commit-tree", "-m", msg, "-p", before, "-p", p.headSHA,
		strings.TrimSpace(tree))
	if err != nil {
		return "", "", err
	}
	after = strings.TrimSpace(commit)
	_, err = s.git(p.repo.dir, "", "update-ref", "refs/heads/"+p.base, after, before)
	return before, after, err
}

// DeleteFork deletes the repository a pull request came from. It stays open,
// and its head.repo is null from now on.
func (s *Server) DeleteFork(repo string, number int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.mustPull(repo, number)
	if err != nil {
		return fmt.Errorf("delete fork: %w", err)
	}
	if p.headRepo == nil || !p.headRepo.foreign {
		return fmt.Errorf("delete fork: %s#%d has none", repo, number)
	}
	gone := p.headRepo
	delete(s.repos, gone.key())
	if err := os.RemoveAll(gone.dir); err != nil {
		return fmt.Errorf("delete fork: %w", err)
	}
	for _, other := range p.repo.pulls {
		if other.headRepo == gone {
			other.headRepo = nil
		}
	}
	s.changed()
	return nil
}
