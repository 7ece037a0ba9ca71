// Package autofix fixes pull requests without a request: failing checks and conflicts of errand's own work, and
// conflicts where a label asks for it. An event or a poll submits a task. The brief of the task reads the present
// state, decides whether there is anything to do, and records the work as begun, so further events do no harm. Commands
// such as /fix-ci have the same briefs.
package autofix

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"github.com/google/go-github/v60/github"

	"github.com/errand-fleet/errand/agent"
	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/github/settings"
	"github.com/errand-fleet/errand/tasks/github/subject"
	"github.com/errand-fleet/errand/tasks/github/thread"
)

// ownBranches matches the branches that errand pushes to: those with the default prefix, and those of threads, which
// begin with the name of a source.
var ownBranches = regexp.MustCompile(`^errand/|^([a-z0-9][a-z0-9_-]*/)+(slack|github|chat|schedule|hook)-[0-9a-f]{10}$`)

// Fixes submits and briefs fixes. It is safe for concurrent use.
type Fixes struct {
	API      thread.Client
	Gate     *subject.Gate
	Memory   subject.Memory
	Settings *settings.Reader
	Watched  func(repo string) bool // reports whether a repository is only watched
}

// Work is a fix that is briefed, or that a poll has found: the pull request as it is now.
type Work struct {
	thread.Thread
	About subject.Origin
	Pull  *github.PullRequest
	Task  tasks.Task // only of a fix that is briefed
}

// submit submits automatic work on a pull request. At most one task of a kind runs for a head.
func (f *Fixes) submit(
	ctx context.Context, d *desk.Desk, kind string, pr *github.PullRequest, o subject.Origin,
) (response string, err error) {
	if f.Watched(o.Repo) {
		return "", subject.IgnoreQuietly(subject.OnlyWatched)
	}
	key := kind + " " + o.Head
	p, err := f.Memory.State(ctx, o.Ref)
	if err != nil {
		return "", err
	}
	old, over := p.Begun[key], false
	if old != "" {
		st, err := d.Status(ctx, old)
		if over = errors.Is(err, tasks.ErrNotFound) || st.Ending != nil; err != nil && !over {
			return "", err
		}
	}
	id := tasks.NewID(f.API.Now(), subject.Source, fmt.Sprintf("%s-%d-%s", kind, o.Number, hub.ShortSHA(o.Head)))
	err = f.Memory.ChangeState(ctx, o.Ref, func(p *subject.State) error {
		// The first task over the limit is submitted, because its brief posts that the limit is reached.
		if why := p.AutomationBlocked(); why != "" && (why != subject.LimitReached || p.Begun[why] != "") {
			return subject.Ignore(why)
		}
		if now := p.Begun[key]; now != "" && (now != old || !over) {
			id = now
		} else {
			p.TakeOver(key, id)
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	t, err := f.Settings.ApplyTo(ctx, subject.Draft{Task: tasks.Task{
		ID: id, Source: subject.Source, Kind: kind, Thread: "github/" + o.String(), Class: tasks.Background,
		Profile: subject.ProfileOf(pr, agent.Write), Repo: o.Repo, Ref: fmt.Sprintf("refs/pull/%d/head", o.Number),
		Actor: pr.GetUser().GetLogin(), Unasked: true, Prompt: fmt.Sprintf("%s of pull request #%d of %s: %s",
			subject.Kinds[kind].Title, o.Number, o.Repo, o.Title),
	}, About: o, Pull: pr})
	if err != nil {
		return "", err
	}
	return subject.Submitted(t.Submit(ctx, d))
}

// submitMissed submits the work with this key, unless a task has started it.
func (f *Fixes) submitMissed(ctx context.Context, d *desk.Desk, kind, key string, w Work) error {
	p, err := f.Memory.State(ctx, w.Ref)
	if err != nil || p.Begun[key] != "" {
		return err
	}
	_, err = f.submit(ctx, d, kind, w.Pull, w.About)
	return err
}

// OwnWork reports whether errand opened a pull request for its own work. Then only errand pushes to its branch.
func OwnWork(pr *github.PullRequest, me string) bool {
	return ownBranches.MatchString(pr.GetHead().GetRef()) && !hub.IsFork(pr) && pr.GetUser().GetLogin() == me
}
