package github

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/errand-fleet/errand/tasks"
)

// permission is what an account may do in a repository, in GitHub's words: maintainers count as write, triagers as read.
type permission string

const (
	admin    permission = "admin"
	write    permission = "write"
	read     permission = "read"
	noAccess permission = "none"
)

// writes reports whether its owner may push, and so may also have errand do it, and let a stranger's code run.
func (p permission) writes() bool { return p == admin || p == write }

// loginForm is what logins look like; others would be addresses within GitHub's API.
var loginForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]*(\[bot\])?$`)

// may asks GitHub what an account may do in a task's repository: author_association in a payload tells of membership, not of permission,
// and is as old as the event. Whoever GitHub does not know may do nothing, but for the bots that may ask. Where it does not answer nobody does, and the error is one to
// try again by; it is an *tasks.InputError where GitHub does not let us ask.
func (s *Source) may(ctx context.Context, o origin, login string) (permission, error) {
	if !loginForm.MatchString(login) {
		return noAccess, nil
	}
	key, now := strings.ToLower(o.Repo+" "+login), s.cfg.Now()
	if p, ok := s.permits.get(key, now); ok {
		return p, nil
	}
	what := "ask what " + login + " may do in " + o.Repo
	gh, err := s.clients.of(ctx, o)
	if err != nil {
		return noAccess, s.sorted(what, err)
	}
	owner, name := o.path()
	level, _, err := gh.Repositories.GetPermissionLevel(ctx, owner, name, url.PathEscape(login))
	if status(err) == http.StatusNotFound {
		if s.mayAsk(login) {
			return write, nil // it is no user to GitHub, which says nothing of it: who has listed it has
		}
		return noAccess, nil
	}
	if err != nil {
		return noAccess, s.sorted(what, err)
	}
	p := permission(level.GetPermission())
	s.permits.put(key, p, now)
	return p, nil
}

// mustWrite refuses whoever may not push.
func (s *Source) mustWrite(ctx context.Context, o origin, login string) error {
	p, err := s.may(ctx, o, login)
	if err == nil && !p.writes() {
		err = &tasks.InputError{Sentence: login + " may not write to " + o.Repo + "."}
	}
	return err
}
