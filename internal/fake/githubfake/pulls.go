package githubfake

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// PR says what OpenPR opens.
type PR struct {
	Repo  string // "owner/name"
	Base  string // "main" when empty
	Head  string // the branch; made from Base when Files are given
	Title string // Head when empty
	Body  string
	User  string // the author, "octocat" when empty
	Draft bool
	// Fork moves the branch to a fork of the author's: the repository keeps
	// only refs/pull/N/head.
	Fork   bool
	Labels []string
	Files  map[string]string // committed on Head first; may be nil when Head exists
}

// Pull is the state of a pull request.
type Pull struct {
	Number                   int
	Title, Body, User        string
	Base, Head               string // branches
	BaseSHA, HeadSHA         string
	HeadRepo                 string // full name, "" when the fork was deleted
	State                    string // open or closed
	Draft, Merged            bool
	Labels, Reviewers        []string
	CreatedAt, UpdatedAt     time.Time
	Commits, Files, Comments int
	Added, Removed           int
}

// pull is a pull request. Guarded by Server.mu.
type pull struct {
	issue

	base, head       string
	baseSHA, headSHA string
	headRepo         *Repo // nil when the fork was deleted
	draft, merged    bool
	commits          int
	files            []fileDiff

	reviewers []string // requested
	reviews   []*Review
	inline    []*ReviewComment
}

// OpenPR opens a pull request as a person would and delivers "opened", and
// "labeled" for each label. The number is valid even when a delivery was not
// answered with success, which is the only error then.
func (s *Server) OpenPR(ctx context.Context, o PR) (number int, err error) {
	s.mu.Lock()
	p, err := s.prepare(o)
	if err != nil {
		s.mu.Unlock()
		return 0, fmt.Errorf("open pull request in %s: %w", o.Repo, err)
	}
	events := []event{s.pullEvent("opened", p, p.user, nil)}
	for _, l := range o.Labels {
		events = append(events, s.pullEvent("labeled", p, p.user, object{"label": label(l)}))
	}
	s.changed()
	s.mu.Unlock()
	return p.number, s.deliver(ctx, events...)
}

func (s *Server) prepare(o PR) (*pull, error) {
	r, err := s.mustRepo(o.Repo)
	if err != nil {
		return nil, err
	}
	if o.Base == "" {
		o.Base = "main"
	}
	if o.Title == "" {
		o.Title = o.Head
	}
	if o.User == "" {
		o.User = "octocat"
	}
	if o.Files != nil {
		// A branch that exists is continued, a new one starts at the base.
		from := o.Base
		if s.resolve(r.dir, o.Head) != "" {
			from = ""
		}
		if _, err := s.commit(r.dir, o.Head, from, o.Files, o.Title); err != nil {
			return nil, err
		}
	}
	head := r
	if o.Fork {
		if head, err = s.fork(r, o); err != nil {
			return nil, err
		}
	}
	return s.addPull(r, head, o)
}

// addPull registers a pull request whose branches are in place.
func (s *Server) addPull(r, head *Repo, o PR) (*pull, error) {
	p := &pull{
		issue: s.newIssue(r, o.Title, o.Body, o.User, o.Labels), headRepo: head, base: o.Base, head: o.Head,
		draft: o.Draft,
	}
	p.pull = p
	if err := s.refresh(p); err != nil {
		return nil, err
	}
	r.lastNumber = p.number // only now: a refusal uses up no number
	r.pulls = append(r.pulls, p)
	return p, nil
}

// fork puts a branch into a fork of the author's and takes it from the original.
func (s *Server) fork(r *Repo, o PR) (*Repo, error) {
	f := s.repos[strings.ToLower(o.User+"/"+r.name)]
	if f == nil {
		var err error
		if f, err = s.addRepo(o.User, r.name); err != nil {
			return nil, err
		}
		f.foreign, f.private = true, r.private
	}
	// The branch lives in the fork only. Its commits stay in the original, as
	// in GitHub's fork network: they can be had by sha from either.
	_, err := s.git(f.dir, "", "fetch", "--quiet", "--no-auto-maintenance", r.dir,
		"+refs/heads/"+o.Base+":refs/heads/"+o.Base, "+refs/heads/"+o.Head+":refs/heads/"+o.Head)
	if err != nil {
		return nil, err
	}
	s.repos[f.key()] = f
	_, err = s.git(r.dir, "", "update-ref", "-d", "refs/heads/"+o.Head)
	return f, err
}

// refresh brings a pull request in line with its branches: the shas, the ref
// refs/pull/N/head, and what git counts between them.
func (s *Server) refresh(p *pull) (err error) {
	base, head := s.resolve(p.repo.dir, p.base), s.resolve(p.headRepo.dir, p.head)
	if base == "" || head == "" {
		return fmt.Errorf("no branch %s or %s", p.base, p.head)
	}
	ref := fmt.Sprintf("refs/pull/%d/head", p.number)
	// The ref outlives branch and fork, which is why clients should use it.
	if p.headRepo != p.repo {
		_, err = s.git(p.repo.dir, "", "fetch", "--quiet", "--no-auto-maintenance", p.headRepo.dir,
			"+refs/heads/"+p.head+":"+ref)
	} else {
		_, err = s.git(p.repo.dir, "", "update-ref", ref, head)
	}
	if err != nil {
		return err
	}
	p.baseSHA, p.headSHA, p.updated = base, head, s.now()
	return s.count(p)
}

func (s *Server) count(p *pull) error {
	commits, err := s.commits(p.repo.dir, p.baseSHA, p.headSHA)
	if err != nil {
		return err
	}
	p.commits = len(commits)
	p.files, err = s.files(p.repo.dir, p.baseSHA, p.headSHA)
	return err
}

func (p *pull) lines() (added, removed int) {
	for _, f := range p.files {
		added += f.added
		removed += f.removed
	}
	return added, removed
}

// Pulls returns all pull requests of a repository by number.
func (s *Server) Pulls(repo string) []Pull {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.mustRepo(repo)
	if err != nil {
		return nil
	}
	var out []Pull
	for _, p := range r.pulls {
		added, removed := p.lines()
		v := Pull{
			Number: p.number, Title: p.title, Body: p.body, User: p.user, Base: p.base, Head: p.head,
			BaseSHA: p.baseSHA, HeadSHA: p.headSHA, State: p.state, Draft: p.draft, Merged: p.merged, Labels: p.labels,
			Reviewers: p.reviewers, CreatedAt: p.created, UpdatedAt: p.updated, Commits: p.commits, Files: len(p.files),
			Comments: len(p.comments), Added: added, Removed: removed,
		}
		if p.headRepo != nil {
			v.HeadRepo = p.headRepo.FullName()
		}
		out = append(out, v)
	}
	return out
}

func (s *Server) mustPull(repo string, number int) (*pull, error) {
	r, err := s.mustRepo(repo)
	if err != nil {
		return nil, err
	}
	if p := r.pull(number); p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("no pull request %s#%d", repo, number)
}
