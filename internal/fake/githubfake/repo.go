package githubfake

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Repo is one repository. Its methods may be called from any goroutine.
type Repo struct {
	s           *Server
	id          int64
	owner, name string
	dir         string
	created     time.Time

	// pushing is held while branches move, so that a push knows which of them
	// it moved. It comes before Server.mu.
	pushing sync.Mutex

	// Guarded by Server.mu.
	private     bool
	foreign     bool // a fork in another account: no write access, not installed
	pushed      time.Time
	permissions map[string]string
	pulls       []*pull
	issues      []*issue // that are no pull requests
	lastNumber  int
	statuses    map[string][]*Status   // by commit, oldest first
	checks      map[string][]*CheckRun // by commit, oldest first
}

// CreateRepo makes a private repository whose default branch "main" has one
// commit with these files.
func (s *Server) CreateRepo(owner, name string, files map[string]string) (*Repo, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.addRepo(owner, name)
	if err != nil {
		return nil, err
	}
	if _, err := s.commit(r.dir, "main", "", files, "Initial commit"); err != nil {
		return nil, fmt.Errorf("create %s: %w", r.FullName(), err)
	}
	s.repos[r.key()] = r
	s.changed()
	return r, nil
}

// addRepo makes an empty repository; the caller registers it once it is ready.
func (s *Server) addRepo(owner, name string) (*Repo, error) {
	r := &Repo{
		s: s, id: s.id(), owner: owner, name: name, created: s.now(), pushed: s.now(), private: true,
		permissions: map[string]string{}, statuses: map[string][]*Status{}, checks: map[string][]*CheckRun{},
	}
	if owner == "" || name == "" || strings.Contains(owner+name, "/") || strings.HasPrefix(owner, ".") {
		return nil, fmt.Errorf("create repository %q: not a name", r.FullName())
	}
	if s.repos[r.key()] != nil {
		return nil, fmt.Errorf("create %s: exists", r.FullName())
	}
	r.dir = filepath.Join(s.cfg.Dir, owner, name+".git")
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return nil, fmt.Errorf("create %s: %w", r.FullName(), err)
	}
	if err := s.initBare(r.dir); err != nil {
		return nil, fmt.Errorf("create %s: %w", r.FullName(), err)
	}
	return r, nil
}

// Repo returns a repository by its full name, or nil.
func (s *Server) Repo(fullName string) *Repo {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.repos[strings.ToLower(fullName)]
}

func (s *Server) mustRepo(fullName string) (*Repo, error) {
	if r := s.repos[strings.ToLower(fullName)]; r != nil {
		return r, nil
	}
	return nil, fmt.Errorf("no repository %s", fullName)
}

// FullName is "owner/name".
func (r *Repo) FullName() string { return r.owner + "/" + r.name }

func (r *Repo) key() string { return strings.ToLower(r.FullName()) }

// CloneURL is the address git clones from.
func (r *Repo) CloneURL() string { return r.s.url + "/" + r.FullName() + ".git" }

// Dir is the bare repository on disk.
func (r *Repo) Dir() string { return r.dir }

// SetPrivate says whether the repository needs credentials to be read. It
// does at first.
func (r *Repo) SetPrivate(private bool) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.private = private
	r.s.changed()
}

// Commit writes one commit and returns its sha. from starts the branch at a
// branch or commit, throwing away what it had (a force push); empty means the
// branch as it is. Content Deleted removes a file. Pull requests from this
// branch follow, but no webhook is sent: this is how a head moves unseen.
func (r *Repo) Commit(branch, from string, files map[string]string, msg string) (sha string, err error) {
	_, sha, err = r.move(branch, from, files, msg, r.owner)
	return sha, err
}

// move commits, lets the pull requests follow, and returns the webhooks.
func (r *Repo) move(branch, from string, files map[string]string, msg, user string) ([]event, string, error) {
	r.pushing.Lock()
	defer r.pushing.Unlock()
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	// Read under the lock the commit is made under: it is the webhook's "before".
	before := r.s.resolve(r.dir, branch)
	sha, err := r.s.commit(r.dir, branch, from, files, msg)
	if err != nil {
		return nil, "", err
	}
	events, err := r.s.follow(r, branch, before, sha, user)
	r.s.changed()
	return events, sha, err
}

// SHA is the commit a branch, ref or abbreviated sha names.
func (r *Repo) SHA(ref string) (string, error) {
	if sha := r.s.resolve(r.dir, ref); sha != "" {
		return sha, nil
	}
	return "", fmt.Errorf("%s: no commit %s", r.FullName(), ref)
}

// Git runs git inside the bare repository and returns its output, for what a
// test wants to know about a pushed branch.
func (r *Repo) Git(ctx context.Context, args ...string) (string, error) {
	if len(args) == 0 {
		return "", errors.New("git: no command")
	}
	return r.s.gitContext(ctx, r.dir, "", args...)
}

func (r *Repo) pull(number int) *pull {
	for _, p := range r.pulls {
		if p.number == number {
			return p
		}
	}
	return nil
}
