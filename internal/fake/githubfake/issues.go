package githubfake

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Issue says what OpenIssue opens.
type Issue struct {
	Repo   string // "owner/name"
	Title  string
	Body   string
	User   string   // the author, "octocat" when empty
	Labels []string // that the author or the template gives it
}

// issue is an issue, or what a pull request has of one. Guarded by Server.mu.
type issue struct {
	id                int64
	number            int
	title, body, user string
	repo              *Repo
	state             string
	locked            bool
	labels, assignees []string
	events            []issueEvent
	created, updated  time.Time
	closed            time.Time
	comments          []*Comment
	reactions         []Reaction

	pull  *pull // nil: it is no pull request
	gone  bool  // it was deleted
	moved *issue
}

// issueEvent is one line of an issue's history.
type issueEvent struct {
	id    int64
	event string // labeled or assigned
	what  string // the label or the assignee
	user  string // who did it
	at    time.Time
}

func (s *Server) newIssue(r *Repo, title, body, user string, labels []string) issue {
	now := s.now()
	i := issue{
		id: s.id(), number: r.lastNumber + 1, title: title, body: body, user: user, repo: r, state: "open",
		labels: labels, created: now, updated: now,
	}
	for _, l := range labels {
		i.events = append(i.events, issueEvent{s.id(), "labeled", l, user, i.created})
	}
	return i
}

// OpenIssue opens an issue as a person would and delivers "opened", and "labeled" for each label.
func (s *Server) OpenIssue(ctx context.Context, o Issue) (number int, err error) {
	s.mu.Lock()
	r, err := s.mustRepo(o.Repo)
	if err != nil {
		s.mu.Unlock()
		return 0, fmt.Errorf("open issue: %w", err)
	}
	if o.User == "" {
		o.User = "octocat"
	}
	made := s.newIssue(r, o.Title, o.Body, o.User, slices.Clone(o.Labels))
	i := &made
	r.lastNumber = i.number
	r.issues = append(r.issues, i)
	events := []event{s.issueEvent("opened", i, o.User, nil)}
	for _, l := range o.Labels {
		events = append(events, s.issueEvent("labeled", i, o.User, object{"label": label(l)}))
	}
	s.changed()
	s.mu.Unlock()
	return i.number, s.deliver(ctx, events...)
}

// addLabel gives an issue or a pull request a label.
func (s *Server) addLabel(i *issue, label, user string) {
	i.updated = s.now()
	if !slices.Contains(i.labels, label) {
		i.labels = append(i.labels, label)
		i.events = append(i.events, issueEvent{s.id(), "labeled", label, user, i.updated})
	}
}

// LabelIssue gives an issue a label, as a user with triage rights would, and delivers "labeled".
func (s *Server) LabelIssue(ctx context.Context, repo string, number int, name, user string) error {
	return s.alterIssue(ctx, repo, number, func(i *issue) event {
		s.addLabel(i, name, user)
		return s.issueEvent("labeled", i, user, object{"label": label(name)})
	})
}

// UnlabelIssue takes a label away and delivers "unlabeled".
func (s *Server) UnlabelIssue(ctx context.Context, repo string, number int, name, user string) error {
	return s.alterIssue(ctx, repo, number, func(i *issue) event {
		i.labels, i.updated = slices.DeleteFunc(i.labels, func(have string) bool { return have == name }), s.now()
		return s.issueEvent("unlabeled", i, user, object{"label": label(name)})
	})
}

// AssignIssue assigns an issue to an account and delivers "assigned".
func (s *Server) AssignIssue(ctx context.Context, repo string, number int, assignee, user string) error {
	return s.alterIssue(ctx, repo, number, func(i *issue) event {
		i.updated = s.now()
		i.assignees = append(i.assignees, assignee)
		i.events = append(i.events, issueEvent{s.id(), "assigned", assignee, user, i.updated})
		return s.issueEvent("assigned", i, user, object{"assignee": s.user(assignee)})
	})
}

// UnassignIssue takes an issue from an account and delivers "unassigned".
func (s *Server) UnassignIssue(ctx context.Context, repo string, number int, assignee, user string) error {
	return s.alterIssue(ctx, repo, number, func(i *issue) event {
		i.assignees, i.updated = slices.DeleteFunc(i.assignees,
			func(have string) bool { return have == assignee }), s.now()
		return s.issueEvent("unassigned", i, user, object{"assignee": s.user(assignee)})
	})
}

// EditIssue changes what an issue says, as its author or a maintainer does, and delivers "edited".
func (s *Server) EditIssue(ctx context.Context, repo string, number int, title, body string) error {
	return s.alterIssue(ctx, repo, number, func(i *issue) event {
		changes := object{"title": object{"from": i.title}, "body": object{"from": i.body}}
		i.title, i.body, i.updated = title, body, s.now()
		return s.issueEvent("edited", i, i.user, object{"changes": changes})
	})
}

// ChangeIssue does what people do to an issue and delivers it. action is "closed", "reopened", "locked", "unlocked" or
// "deleted".
func (s *Server) ChangeIssue(ctx context.Context, repo string, number int, action, user string) error {
	var err error
	failed := s.alterIssue(ctx, repo, number, func(i *issue) event {
		i.updated = s.now()
		switch action {
		case "closed":
			i.state, i.closed = "closed", i.updated
		case "reopened":
			i.state, i.closed = "open", time.Time{}
		case "locked", "unlocked":
			i.locked = action == "locked"
		case "deleted":
			i.gone = true
		default:
			err = errors.New("not an action")
			return event{}
		}
		return s.issueEvent(action, i, user, nil)
	})
	return errors.Join(err, failed)
}

// TransferIssue moves an issue to another repository, where it gets a new number and a new identity, and delivers
// "transferred". The old address redirects.
func (s *Server) TransferIssue(ctx context.Context, repo string, number int, to, user string) (moved int, err error) {
	err = s.alterIssue(ctx, repo, number, func(i *issue) event {
		r := s.repos[to]
		if r == nil {
			return event{}
		}
		made := s.newIssue(r, i.title, i.body, i.user, nil)
		made.comments = i.comments
		r.lastNumber = made.number
		r.issues = append(r.issues, &made)
		i.moved, moved = &made, made.number
		return s.issueEvent("transferred", i, user,
			object{"changes": object{"new_issue": s.issueJSON(&made), "new_repository": s.repository(r)}})
	})
	return moved, err
}

func (s *Server) alterIssue(ctx context.Context, repo string, number int, alter func(*issue) event) error {
	s.mu.Lock()
	i, err := s.mustIssue(repo, number)
	if err != nil {
		s.mu.Unlock()
		return fmt.Errorf("alter issue: %w", err)
	}
	e := alter(i)
	s.changed()
	s.mu.Unlock()
	return s.deliver(ctx, e)
}

// IssueReactions returns the reactions to an issue itself.
func (s *Server) IssueReactions(repo string, number int) []Reaction {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, err := s.mustIssue(repo, number)
	if err != nil {
		return nil
	}
	return slices.Clone(i.reactions)
}

// conversations returns the issues and pull requests of a repository that can still be seen, by number.
func (r *Repo) conversations() (all []*issue) {
	for _, p := range r.pulls {
		all = append(all, &p.issue)
	}
	for _, i := range r.issues {
		if !i.gone && i.moved == nil {
			all = append(all, i)
		}
	}
	slices.SortFunc(all, func(a, b *issue) int { return a.number - b.number })
	return all
}

func (s *Server) mustIssue(repo string, number int) (*issue, error) {
	r, err := s.mustRepo(repo)
	if err != nil {
		return nil, err
	}
	for _, i := range r.conversations() {
		if i.number == number {
			return i, nil
		}
	}
	return nil, fmt.Errorf("no issue %s#%d", repo, number)
}

// issueEvent is an issues webhook. more is added to the payload.
func (s *Server) issueEvent(action string, i *issue, sender string, more object) event {
	body := s.envelope(i.repo, sender)
	body["action"], body["issue"] = action, s.issueJSON(i)
	maps.Copy(body, more)
	return s.encode("issues", body)
}
