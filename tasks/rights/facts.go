package rights

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/errand-fleet/errand/forge"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/people"
	"github.com/errand-fleet/errand/tasks/policy"
)

// collect adds what is known of the repositories of a task and of its conversation.
func (p Policy) collect(
	ctx context.Context, s *store.Store, by tasks.Asker, t tasks.Task, o *policy.Object,
) (err error) {
	asker, checked := by, p.onForge(by.Source) && t.Thread != ""
	if checked {
		asker = tasks.Asker{}
	}
	if o.Repos, err = p.repos(ctx, asker, t.Places(), true); err != nil {
		return err
	}
	for i := range o.Repos {
		o.Repos[i].Writes = o.Repos[i].Writes || checked
	}
	if t.Thread != "" && !unasked(t) { // see Apart
		past, err := remembered(ctx, s, t)
		if err != nil {
			return err
		}
		// A conversation on the forge is about its own repository, if no other one has been joined with it.
		o.Forgotten = past.Repos == nil && (!checked || !strings.HasPrefix(t.Thread, by.Source+"/"))
		if o.Past, err = p.repos(ctx, by, past.Repos, false); err != nil {
			return err
		}
	}
	if t.Repo == "" || !o.Channel && len(o.Repos)+len(o.Past) < 2 {
		return nil // who else may read a repository does not matter
	}
	for past, list := range [][]policy.Repo{o.Repos, o.Past} {
		for i := range list {
			private, err := p.Rights.Forge.Private(ctx, list[i].Name)
			err = tasks.FromForge(err)
			// An error about a repository of the past would name it to those who may not read it.
			if _, refused := errors.AsType[*tasks.InputError](err); refused && past == 1 {
				err = forge.ErrNotFound
			}
			if err != nil && !errors.Is(err, forge.ErrNotFound) {
				return fmt.Errorf("check whether %s is private: %w", list[i].Name, err)
			}
			list[i].Private = private || err != nil // not seen is not public
			list[i].Listed = o.Channel && p.Rights.Lists(t.Channel, list[i].Name)
		}
	}
	return nil
}

// limits reports whether people are limited to what they may do themselves on the forge.
func (p Policy) limits() bool { return p.Rights != nil && p.Rights.Forge != nil }

// onForge reports whether a source is the forge.
func (p Policy) onForge(source string) bool { return p.limits() && source == p.Rights.Forge.Name() }

// identify returns a person with their account on the forge. In Slack, the operator's settings and the links of now
// count.
func (p Policy) identify(ctx context.Context, s *store.Store, by tasks.Asker) (_ tasks.Asker, err error) {
	switch {
	case !p.limits():
		return by, nil
	case p.onForge(by.Source):
		by.Login = by.Account
		return by, nil
	case by.Source == people.SlackSource:
		if by.Login, by.ID, err = p.Linked(ctx, s, by.Account); err != nil {
			return by, err
		}
	}
	one, _ := p.People.Find(by.Source, by.Account)
	by.Login = cmp.Or(by.Login, one.Account(p.Rights.Forge.Name()))
	return by, nil
}

// repos collects what is known of repositories, and of what a person may do there. Nobody may read those that a task
// does not name and about which errand may not ask; the first of these that a person may not read decides.
func (p Policy) repos(ctx context.Context, by tasks.Asker, names []string, named bool) (list []policy.Repo, err error) {
	for _, name := range names {
		r, err := p.repo(ctx, by, name)
		if _, refused := errors.AsType[*tasks.InputError](err); err != nil && (named || !refused) {
			return nil, err
		}
		list = append(list, r)
		if !named && p.limits() && by.Login != "" && !r.Open && !r.Reads && !r.Writes {
			break
		}
	}
	return list, nil
}

func (p Policy) repo(ctx context.Context, by tasks.Asker, name string) (r policy.Repo, err error) {
	allowed, err := p.Allowed(name)
	r = policy.Repo{Name: name, Open: err == nil && allowed.Open}
	if name == "" || by.Login == "" || !p.limits() {
		return r, nil
	}
	level, err := p.Rights.Forge.Permission(ctx, name, by.Login)
	if err == nil && by.ID != 0 {
		r.ID, err = p.Rights.Forge.AccountID(ctx, name, by.Login)
	}
	if r.Missing = errors.Is(err, forge.ErrNotFound); err != nil && !r.Missing {
		return policy.Repo{Name: name}, fmt.Errorf("check rights: %w", tasks.FromForge(err))
	}
	r.Writes, r.Reads = level.CanWrite(), level == forge.PermissionRead
	return r, nil
}
