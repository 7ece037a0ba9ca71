package tasks

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/forge"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks/policy"
)

// Rights limits people to what they may do themselves on the forge: a request runs with the rights of its asker in the
// repository. The forge is asked just before a run starts, before a run takes up a message, and for each answer to a
// question, so that a permission counts as it is then. GitHub's own requests are checked in their briefs, because the
// source knows which of them a person has made; only what their conversation has been about is checked here.
type Rights struct {
	Forge    Permissions     // nil: there are no limits
	Unmapped policy.Unmapped // what people in Slack may do whose account on the forge is unknown
	Links    bool            // people may link their account in Slack to one on the forge; see Link
	// Lists reports whether the operator permits answers about a private repository in a Slack channel.
	Lists func(channel, repo string) bool
}

// Permissions is the part of a [forge.Forge] that Rights needs.
type Permissions interface {
	Name() string
	Permission(ctx context.Context, repo, login string) (forge.Permission, error)
	AccountID(ctx context.Context, repo, login string) (int64, error)
	Private(ctx context.Context, repo string) (bool, error)
}

// Asker is who asks for something: an account in a source.
type Asker struct {
	Source  string `json:"source"`
	Account string `json:"account"`
	Login   string `json:"login,omitempty"` // on the forge, if the front door knows it
	ID      int64  `json:"-"`               // that Login's account had when the person linked it; 0: no link is in use
	// Partial means that their role at the front door holds in some repositories only, and that Login does not say
	// what they may do elsewhere.
	Partial bool `json:"partial,omitempty"`
}

// The sources whose accounts Rights knows by name.
const (
	slackSource = "slack"
	forgeSource = "github"
	chatSource  = "chat"
)

// askedBy returns who asked for a task: the person who retried it, or its author.
func (t Task) askedBy() Asker {
	if t.Retrier != (Asker{}) {
		return t.Retrier
	}
	return Asker{Source: t.Source, Account: t.Actor, Login: t.Login, Partial: t.Partial}
}

// askerIn returns who acts in a context, or the zero value if errand itself does.
func askerIn(ctx context.Context) Asker {
	if a, ok := ctx.Value(senderKey{}).(*acting); ok {
		return Asker{Source: a.Source, Account: a.Account}
	}
	if v, ok := ctx.Value(visitorKey{}).(*Visitor); ok {
		return Asker{Source: chatSource, Account: Actor(ctx), Login: v.Login, Partial: v.Partial()}
	}
	return Asker{}
}

// Permit returns the profile with which a task may run now, on a worker with a sandbox or without one. An *InputError
// refuses the task. After any other error nothing is known, so the task must not run. limited says why the run may only
// read although the task asks for more, as a clause about who asked; empty: it may do all.
//
// Without a sandbox, the code of a repository also runs for people who are not limited, in tests and set-ups. Who may
// push to it can therefore reach the machine in a way that this does not prevent.
func (p Policy) Permit(
	ctx context.Context, s *store.Store, t Task, sandboxed bool,
) (_ agent.Profile, limited string, _ error) {
	v, err := p.decide(ctx, s, policy.Work, t, policy.Object{
		Writes: t.Profile == agent.Write, Public: p.onForge(t.Source), Unsandboxed: !sandboxed,
		// Elsewhere it does not matter where the answer is posted, so nobody is asked whether a repository is private.
		Channel: p.limits() && p.Rights.Unmapped != policy.UnmappedAll &&
			t.Source == slackSource && !strings.HasPrefix(t.Channel, "D"),
	})
	if err != nil {
		return "", "", err
	}
	if v.Reads && t.Profile == agent.Write {
		return agent.Read, v.Reason, nil
	}
	return t.Profile, "", nil
}

// PermitNow checks that the asker may let errand read the task's repository and post the answer where they asked.
func PermitNow(ctx context.Context, d *Desk, t Task) error {
	_, _, err := d.policy.Permit(ctx, d.store, t, true)
	return err
}

// PermitReady checks that a person may mark a pull request as ready, whose task they control if own is set. An
// *InputError says why they may not.
func PermitReady(ctx context.Context, d *Desk, by Asker, own bool, repo string) error {
	_, err := d.policy.decide(ctx, d.store, policy.MarkReady, Task{Retrier: by, Repo: repo}, policy.Object{Own: own})
	return err
}

// MayPost reports whether results about a repository, or about none, may be posted in a Slack channel.
func (p Policy) MayPost(ctx context.Context, channel, repo string) (bool, error) {
	_, err := p.decide(ctx, nil, policy.Announce, Task{Repo: repo, Channel: channel}, policy.Object{Channel: true})
	if errors.Is(err, ErrRefused) {
		return false, nil
	}
	return err == nil, err
}

// permitAnswer checks that the person who answers a question of a task may do what the run that asked it may do.
func (p Policy) permitAnswer(ctx context.Context, s *store.Store, id string, q Question) error {
	rec, err := s.Get(ctx, id)
	if err != nil {
		return err
	}
	t, err := ReadTask(rec)
	if err != nil {
		return err
	}
	o := policy.Object{Writes: cmp.Or(q.Profile, t.Profile) == agent.Write, Unsandboxed: q.Unsandboxed}
	_, err = p.decide(ctx, s, policy.Steer, Task{Retrier: askerIn(ctx), Repo: t.Repo, Also: t.Also}, o)
	return err
}

// decide collects the facts about what the asker of a task wants to do; without a thread, it is in no conversation. An
// *InputError says why they may not.
func (p Policy) decide(
	ctx context.Context, s *store.Store, a policy.Action, t Task, o policy.Object,
) (v policy.Verdict, err error) {
	by, err := p.identify(ctx, s, t.askedBy())
	if err != nil {
		return v, err
	}
	if t.unasked() {
		by = Asker{}
	}
	// People at the front door whose account is not known have their role instead.
	subject := policy.Subject{Name: by.Login, ID: by.ID, Partial: by.Partial}
	subject.Unlimited = !p.limits() || by.Login == "" && by.Source != slackSource
	var posture policy.Posture
	if p.limits() {
		posture.Unmapped, posture.Links = p.Rights.Unmapped, p.Rights.Links
		if err := p.collect(ctx, s, by, t, &o); err != nil {
			return v, err
		}
	}
	if o.Writes && o.Unsandboxed {
		if o.Machine, err = p.repos(ctx, by, p.Listed, false); err != nil {
			return v, err
		}
	}
	v = policy.Decide(subject, a, o, posture)
	if !v.Allowed {
		err = fmt.Errorf("%w: %w", ErrRefused, &InputError{Sentence: v.Reason})
	}
	return v, err
}

// collect adds what is known of the repositories of a task and of its conversation.
func (p Policy) collect(ctx context.Context, s *store.Store, by Asker, t Task, o *policy.Object) (err error) {
	asker, checked := by, p.onForge(by.Source) && t.Thread != ""
	if checked {
		asker = Asker{}
	}
	if o.Repos, err = p.repos(ctx, asker, t.Places(), true); err != nil {
		return err
	}
	for i := range o.Repos {
		o.Repos[i].Writes = o.Repos[i].Writes || checked
	}
	if t.Thread != "" && !t.unasked() { // see Apart
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
			err = FromForge(err)
			// An error about a repository of the past would name it to those who may not read it.
			if _, refused := errors.AsType[*InputError](err); refused && past == 1 {
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
func (p Policy) identify(ctx context.Context, s *store.Store, by Asker) (_ Asker, err error) {
	switch {
	case !p.limits():
		return by, nil
	case p.onForge(by.Source):
		by.Login = by.Account
		return by, nil
	case by.Source == slackSource:
		if by.Login, by.ID, err = p.linked(ctx, s, by.Account); err != nil {
			return by, err
		}
	}
	one, _ := p.People.Find(by.Source, by.Account)
	by.Login = cmp.Or(by.Login, one.Account(p.Rights.Forge.Name()))
	return by, nil
}

// repos collects what is known of repositories, and of what a person may do there. Nobody may read those that a task
// does not name and about which errand may not ask; the first of these that a person may not read decides.
func (p Policy) repos(ctx context.Context, by Asker, names []string, named bool) (list []policy.Repo, err error) {
	for _, name := range names {
		r, err := p.repo(ctx, by, name)
		if _, refused := errors.AsType[*InputError](err); err != nil && (named || !refused) {
			return nil, err
		}
		list = append(list, r)
		if !named && p.limits() && by.Login != "" && !r.Open && !r.Reads && !r.Writes {
			break
		}
	}
	return list, nil
}

func (p Policy) repo(ctx context.Context, by Asker, name string) (r policy.Repo, err error) {
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
		return policy.Repo{Name: name}, fmt.Errorf("check rights: %w", FromForge(err))
	}
	r.Writes, r.Reads = level.CanWrite(), level == forge.PermissionRead
	return r, nil
}

// Conversation is what Rights must know about a session. The worker stores it in the notes of the session.
type Conversation struct {
	// Repos are the repositories that its runs have worked in; "" means work without one. Nil: they are not known.
	Repos []string `json:"repos"`
}

// conversation returns what is known of the session of a thread.
func conversation(ctx context.Context, s *store.Store, thread string) (past Conversation, err error) {
	notes, err := s.Threads.SessionMeta(ctx, thread)
	if errors.Is(err, store.ErrNotFound) {
		return Conversation{Repos: []string{}}, nil
	}
	if err == nil && json.Unmarshal(notes, &past) != nil {
		past.Repos = nil
	}
	return past, err
}

// remembered returns the other repositories that the conversation of a task's thread has been about.
func remembered(ctx context.Context, s *store.Store, t Task) (Conversation, error) {
	past, err := conversation(ctx, s, t.Thread)
	past.Repos = slices.DeleteFunc(past.Repos, func(repo string) bool { return repo == "" || t.Has(repo) })
	return past, err
}

// unasked reports whether no person has asked for a task, or for it to be retried.
func (t Task) unasked() bool { return t.Unasked && t.Retrier == (Asker{}) }

// Apart reports whether a task has to begin a conversation of its own: no person has asked for it whose rights could be
// checked, and the conversation of its thread has been about other repositories, or it is not known about which.
func (p Policy) Apart(ctx context.Context, s *store.Store, t Task) (bool, error) {
	if !p.limits() || !t.unasked() {
		return false, nil
	}
	past, err := remembered(ctx, s, t)
	if past.Repos == nil {
		return !strings.HasPrefix(t.Thread, t.Source+"/"), err
	}
	return len(past.Repos) > 0, err
}
