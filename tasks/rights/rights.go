package rights

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/forge"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/people"
	"github.com/errand-fleet/errand/tasks/policy"
	"github.com/errand-fleet/errand/tasks/record"
)

// ForgeRights limits people to what they may do themselves on the forge: a request runs with the rights of its asker in
// the repository. The forge decides just before a run starts, before a run takes up a message, and for each answer to
// a question, so that a permission counts as it is then. GitHub's own requests are checked in their briefs, because the
// source knows which of them a person has made; only what their conversation has been about is checked here.
type ForgeRights struct {
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

// Permit returns the profile with which a task may run now, on a worker with a sandbox or without one. An *InputError
// refuses the task. After any other error nothing is known, so the task must not run. limited says why the run may only
// read although the task asks for more, as a clause about who asked; empty: it may do all.
//
// Without a sandbox, the code of a repository also runs for people who are not limited, in tests and set-ups. Who may
// push to it can therefore reach the machine in a way that this does not prevent.
func (p Policy) Permit(
	ctx context.Context, s *store.Store, t tasks.Task, sandboxed bool,
) (_ agent.Profile, limited string, _ error) {
	v, err := p.decide(ctx, s, policy.Work, t, policy.Object{
		Writes: t.Profile == agent.Write, Public: p.onForge(t.Source), Unsandboxed: !sandboxed,
		Channel: p.inChannel(t),
	})
	if err != nil {
		return "", "", err
	}
	if v.Reads && t.Profile == agent.Write {
		return agent.Read, v.Reason, nil
	}
	return t.Profile, "", nil
}

// inChannel reports whether it matters who reads the channel in which a task is answered. Elsewhere nobody is asked
// whether a repository is private.
func (p Policy) inChannel(t tasks.Task) bool {
	return p.limits() && p.Rights.Unmapped != policy.UnmappedAll && t.Source == people.SlackSource &&
		!strings.HasPrefix(t.Channel, "D")
}

// PermitReady checks that a person may mark a pull request as ready, whose task they control if own is set. An
// *InputError says why they may not.
func (p Policy) PermitReady(ctx context.Context, s *store.Store, by tasks.Asker, own bool, repo string) error {
	_, err := p.decide(ctx, s, policy.MarkReady, tasks.Task{Retrier: by, Repo: repo}, policy.Object{Own: own})
	return err
}

// MayPost reports whether results about a repository, or about none, may be posted in a Slack channel.
func (p Policy) MayPost(ctx context.Context, channel, repo string) (bool, error) {
	posted := tasks.Task{Repo: repo, Channel: channel}
	_, err := p.decide(ctx, nil, policy.Announce, posted, policy.Object{Channel: true})
	if errors.Is(err, tasks.ErrRefused) {
		return false, nil
	}
	return err == nil, err
}

// PermitAnswer checks that somebody who answers a question of a task may do what the run that asked it may do.
func (p Policy) PermitAnswer(ctx context.Context, s *store.Store, by tasks.Asker, id string, q tasks.Question) error {
	rec, err := s.Get(ctx, id)
	if err != nil {
		return err
	}
	t, err := record.Task(rec)
	if err != nil {
		return err
	}
	o := policy.Object{Writes: cmp.Or(q.Profile, t.Profile) == agent.Write, Unsandboxed: q.Unsandboxed}
	_, err = p.decide(ctx, s, policy.Steer, tasks.Task{Retrier: by, Repo: t.Repo, Also: t.Also}, o)
	return err
}

// decide collects the facts about what the asker of a task wants to do; without a thread, it is in no conversation. An
// *InputError says why they may not.
func (p Policy) decide(
	ctx context.Context, s *store.Store, a policy.Action, t tasks.Task, o policy.Object,
) (v policy.Verdict, err error) {
	by, err := p.identify(ctx, s, t.AskedBy())
	if err != nil {
		return v, err
	}
	if unasked(t) {
		by = tasks.Asker{}
	}
	// People at the front door whose account is not known have their role instead.
	subject := policy.Subject{Name: by.Login, ID: by.ID, Partial: by.Partial}
	subject.Unlimited = !p.limits() || by.Login == "" && by.Source != people.SlackSource
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
		err = fmt.Errorf("%w: %w", tasks.ErrRefused, &tasks.InputError{Sentence: v.Reason})
	}
	return v, err
}
