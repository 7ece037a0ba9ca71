package worker

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/environment"
	"github.com/errand-fleet/errand/forge"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/workspace"
)

const (
	publishFor      = 2 * time.Minute  // before the checks of a repository, and after them
	publishDraining = 20 * time.Second // how much longer publishing may take when the worker drains
	proposeFirst    = time.Minute      // the first attempt to open the pull requests
	proposeFor      = 3 * time.Minute  // how long an answer waits for its pull request

	// Bounds of the time for all verification commands together; within them it is the rest of the run's limit.
	// asynq's deadline follows soon after.
	verifyAtLeast   = 2 * time.Minute
	verifyAtMost    = 15 * time.Minute
	askCommandsFor  = 10 * time.Second // to get the list of commands
	maxVerifyOutput = 2000             // bytes that are kept of the end of an output
)

// branchOf returns the branch for the work of a thread. Its last part is always the same, and a hash hides names of
// people in the thread's name.
func branchOf(prefix, thread string) string {
	source, _, _ := strings.Cut(thread, "/")
	return cmp.Or(prefix, environment.DefaultBranchPrefix) + fmt.Sprintf("%s-%x", source,
		sha256.Sum256([]byte(thread)))[:len(source)+1+10]
}

// publisher pushes the work of answered tasks and opens their pull requests. It is safe for concurrent use.
type publisher struct {
	*Config

	learning learning
}

// publishes reports whether the task's work is published.
func (b *publisher) publishes(t tasks.Task) bool {
	return b.Publisher != nil && t.Repo != "" && t.Profile == agent.Write
}

// publish pushes the work of an answered task in each of its repositories, and tries once to open the pull requests.
// Errors are reported in the ending: they lose neither the answer nor the work, which stays in the clones. After a lost
// claim, the store decides whether this worker may store the ending.
func (b *publisher) publish(run *run, t tasks.Task, p place, e *tasks.Ending) {
	if p.Branch == "" || e.Kind != tasks.Answered {
		return
	}
	ctx, cancel := publishing(run, checksLeft(run, t)+2*publishFor)
	defer cancel()
	for _, one := range p.clones() {
		done := b.publishClone(ctx, run, forRepository(t, one.Clone.Repo), one)
		if done != nil && done.Problem != "" && len(p.Also) > 0 {
			done.Problem = one.Clone.Repo + ": " + done.Problem
		}
		switch {
		case done == nil:
		case e.Published == nil:
			e.Published = done
		default:
			e.Also = append(e.Also, done)
		}
	}
	ctx, cancel = publishing(run, proposeFirst)
	defer cancel()
	b.warn(b.proposeAll(ctx, t, e), "open pull request", "run", t.ID, "thread", t.Thread) // the outbox retries
}

// publishClone pushes the work in one clone. It returns nil if there is nothing to publish.
func (b *publisher) publishClone(ctx context.Context, run *run, t tasks.Task, p place) *tasks.Published {
	ctx, patience, cancel := patiently(ctx)
	defer cancel()
	pushed, checks, err := b.push(ctx, patience, run, t, p)
	switch {
	case err != nil:
		b.Log.Warn("publish work", "run", t.ID, "thread", t.Thread, "repo", t.Repo, "err", err)
		said := b.Policy.Redactor.String(unpublished(err, p.Clone.Dir)) // it may quote the remote
		return &tasks.Published{Problem: "The changes were not published: " +
			said + ". They are kept. Ask again here to continue."}
	case pushed.Commit == "":
		return nil
	}
	if pushed.New {
		b.Log.Info("work published", "run", t.ID, "thread", t.Thread, "branch", p.Branch, "commit", pushed.Commit)
	}
	return &tasks.Published{Due: true, Work: tasks.Work{
		Repo: t.Repo, Branch: p.Branch, Commit: pushed.Commit, Base: cmp.Or(p.Into, p.Clone.Base), Fixes: p.Fixes,
		Title:        cmp.Or(b.Policy.Redactor.String(pushed.Subject), t.Title()),
		Verification: checks, Style: b.style(ctx, p),
	}}
}

// tellable lists the errors of publishing whose texts are meant for people.
var tellable = []error{
	workspace.ErrUnfit, workspace.ErrForeign, workspace.ErrRejected, workspace.ErrNotFound, workspace.ErrAuth,
	errPublishTime, errStuck, errVerifyStuck,
}

var (
	errPublishTime = errors.New("it took too long")
	errStuck       = errors.New("a process of the run could not be stopped and may still change them")
	errVerifyStuck = errors.New("a process of the checks could not be stopped and may still change them")
)

// unpublished says, for people, why nothing was published. Other errors are about the worker's machine and are only
// in its log.
func unpublished(err error, dir string) string {
	if !slices.ContainsFunc(tellable, func(known error) bool { return errors.Is(err, known) }) {
		return "the worker failed to do it; its log has details"
	}
	said := err.Error()
	if dir != "" {
		said = strings.ReplaceAll(said, dir, "the clone")
	}
	return said
}

// publishing returns the context of publishing in all repositories, which may take a time in all. It ends at once if
// the claim is lost, and soon if the worker drains.
func publishing(run *run, most time.Duration) (context.Context, context.CancelFunc) {
	ctx, stop := context.WithCancelCause(run.detached)
	late := time.AfterFunc(most, func() { stop(errPublishTime) })
	forget := context.AfterFunc(run.ctx, func() {
		if errors.Is(run.cause(), errClaimLost) {
			stop(errClaimLost)
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(publishDraining):
			stop(run.cause())
		}
	})
	return ctx, func() { forget(); late.Stop(); stop(nil) }
}

// patiently returns the context of publishing in one repository, which patience limits: a slow one leaves time for
// others.
func patiently(ctx context.Context) (_ context.Context, patience *time.Timer, cancel context.CancelFunc) {
	ctx, stop := context.WithCancelCause(ctx)
	patience = time.AfterFunc(publishFor, func() { stop(errPublishTime) })
	return ctx, patience, func() { patience.Stop(); stop(nil) }
}

// push pushes the work to the remote, if this worker still has the claim. Right before the push, when its content is
// fixed, the verification commands run; files that they leave behind are not pushed. Their time does not count
// against patience.
func (b *publisher) push(
	ctx context.Context, patience *time.Timer, run *run, t tasks.Task, p place,
) (_ workspace.Pushed, checks *tasks.Verification, err error) {
	if run.result.Resources.Stuck > 0 { // git opens files by name, and the process could replace them
		return workspace.Pushed{}, nil, errStuck
	}
	if run.stuck { // a process of another repository's checks, which may use the run's files
		return workspace.Pushed{}, nil, errVerifyStuck
	}
	ours, err := b.Store.Threads.Pushed(ctx, t.Repo, p.Branch)
	if err != nil {
		return workspace.Pushed{}, nil, err
	}
	pushed, err := b.Workspace.Publish(ctx, p.Clone, workspace.Publication{
		Branch: p.Branch, Message: message(t) + p.trailers(t) + "\n", TrustedConfig: p.Trusted, Ours: ours,
		Refuse: p.refusesSecrets(),
		Author: p.Author, Asker: p.CoAuthor, Credit: func(message string) string {
			return credit(message, t.ID, p.CoAuthor)
		},
		Permit: func(_ context.Context, commit string) (err error) {
			patience.Stop()
			if checks, err = b.verify(run, t, p); err != nil {
				return err
			}
			patience.Reset(publishFor)
			held, err := run.persist("publish", func() error {
				return run.claim.Pushing(run.detached, t.Repo, p.Branch, commit)
			})
			if err == nil && !held {
				err = errClaimLost
			}
			return err
		},
	})
	if err == nil && pushed.Commit != "" && !pushed.New {
		if some, cerr := b.verificationCommands(ctx, t, p); cerr != nil || len(some) > 0 {
			checks = &tasks.Verification{Before: true}
		}
	}
	return pushed, checks, err
}

// message returns the message of the commit with the uncommitted changes, up to its trailers.
func message(t tasks.Task) string {
	subject := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, t.Title())
	return subject + "\n\n"
}

// proposeAll opens or updates the pull requests that are due. Then each gets links to those that were not open before
// it.
func (b *publisher) proposeAll(ctx context.Context, t tasks.Task, e *tasks.Ending) (err error) {
	for _, p := range e.Publications() {
		if p.Due {
			p.Together = e.Beside(p)
			err = errors.Join(err, b.propose(ctx, t, p, e.Result.Text))
		}
	}
	for _, p := range e.Publications() {
		all := e.Beside(p)
		if p.PullRequest.Number == 0 || slices.Equal(all, p.Together) {
			continue
		}
		linked := *p
		linked.Together = all
		if failed := b.propose(ctx, t, &linked, e.Result.Text); failed != nil || linked.Problem != "" {
			err = errors.Join(err, failed)
			continue
		}
		*p = linked
	}
	return err
}

// propose opens or updates a pull request, and makes its conversation an alias of the thread.
func (b *publisher) propose(ctx context.Context, t tasks.Task, p *tasks.Published, summary string) error {
	proposal := b.proposal(t, p.Work, summary)
	proposal.Together, proposal.Number = p.Together, p.PullRequest.Number
	pr, err := b.Publisher.Publish(ctx, proposal)
	err = tasks.FromForge(err)
	if why, ok := errors.AsType[*tasks.InputError](err); ok {
		p.Problem, p.Due = "The changes are on branch "+p.Branch+" of "+p.Repo+", without a pull request: "+
			why.Sentence, false
		return nil
	}
	if err != nil {
		return fmt.Errorf("open pull request for %s: %w", p.Branch, err)
	}
	p.PullRequest, p.Due = pr, false
	if conversation := fmt.Sprintf("%s/%s#%d", b.Publisher.Name(), p.Repo, pr.Number); conversation != t.Thread {
		b.warn(b.Store.Threads.Alias(ctx, conversation, t.Thread), "join threads", "run", t.ID, "thread", t.Thread)
	}
	return nil
}

// proposal describes published work for a forge.
func (b *publisher) proposal(t tasks.Task, work tasks.Work, summary string) forge.Proposal {
	p := forge.Proposal{
		Repo: work.Repo, Branch: work.Branch, Commit: work.Commit, Base: work.Base, Title: work.Title,
		Fixes: work.Fixes, Run: t.ID, Thread: t.Thread, Source: t.Source, Asker: b.Policy.People.NameOf(t),
		Verification: work.Verification.Markdown(), Summary: summary, Reviewer: b.account(t), Style: work.Style,
	}
	if b.ConsoleURL != "" {
		p.RunURL = b.ConsoleURL + "/tasks/" + t.ID
	}
	if t.Source != b.Publisher.Name() && p.Reviewer != p.Asker {
		p.AskerAccount = p.Reviewer
	}
	return p
}

// OpenDue opens the pull requests when an ending is posted, as far as that failed when the ending was stored. The
// answer waits at most proposeFor for them and for their links.
func (b *publisher) OpenDue(ctx context.Context, t tasks.Task, e *tasks.Ending) error {
	lacks := func(p *tasks.Published) bool {
		return p.Due || p.PullRequest.Number > 0 && !slices.Equal(p.Together, e.Beside(p))
	}
	if !slices.ContainsFunc(e.Publications(), lacks) {
		return nil
	}
	err := error(nil)
	if b.Publisher != nil {
		err = b.proposeAll(ctx, t, e)
	}
	again := time.Now()
	if wait, ok := errors.AsType[*tasks.ErrLater](err); ok {
		again = wait.At
	}
	if err != nil && again.Before(e.At.Add(proposeFor)) {
		return err
	}
	for _, p := range e.Publications() {
		if p.Due {
			b.Log.Warn("answer without pull request", "run", t.ID, "thread", t.Thread, "err", err)
			p.Problem = "The changes are on branch " + p.Branch + " of " + p.Repo +
				". A pull request could not be opened. Ask again here to retry."
		}
	}
	return nil
}

// verify runs a repository's verification commands in the directory where its agent has worked. An error means that
// nothing may be published.
func (b *publisher) verify(run *run, t tasks.Task, p place) (*tasks.Verification, error) {
	commands, err := b.verificationCommands(run.ctx, t, p)
	if err != nil {
		b.Log.Warn("read checks", "run", t.ID, "err", err)
		return &tasks.Verification{Problem: "their list could not be read"}, nil
	}
	if len(commands) == 0 {
		return nil, nil
	}
	left := checksLeft(run, t)
	if run.verifying.IsZero() { // the checks of all repositories share the time
		run.verifying = time.Now()
	}
	c, until := &tasks.Verification{Unrun: commands}, run.verifying.Add(left)
	for len(c.Unrun) > 0 {
		switch {
		case run.ctx.Err() != nil:
			c.Problem = run.cause().Error()
			return c, nil //nolint:nilerr // reported as c.Problem
		case !time.Now().Before(until):
			c.Problem = "the time limit for all of them is " + tasks.Lasted(left)
			return c, nil
		}
		command := c.Unrun[0]
		run.report.Update(agent.Event{Time: time.Now(), Kind: agent.Notice, Text: "Running the check " + command})
		s, err := b.Runner.Script(run.ctx, agent.Script{
			ID: t.ID, Repo: t.Repo, Also: p.otherRepositories(), Dir: p.Dir, Files: p.Files, Reads: p.Reads,
			Environment: p.given(), Line: command, Limit: time.Until(until),
		})
		run.learn(s.Egress)
		switch {
		case err != nil:
			b.Log.Warn("run check", "run", t.ID, "err", err)
			c.Problem = "the worker could not start them"
			return c, nil
		case s.Stuck > 0:
			run.stuck = true
			return nil, errVerifyStuck
		case s.Outcome == agent.Stopped:
			continue // the cause says why
		}
		b.Log.Info("check ended", "run", t.ID, "outcome", string(s.Outcome), "dur", s.Duration.Round(time.Millisecond))
		ran := tasks.Verified{Command: command, Outcome: s.Outcome, ExitCode: s.ExitCode, Duration: s.Duration}
		if s.Outcome != agent.Done {
			ran.Said = end(s.Output, maxVerifyOutput)
		}
		c.Ran, c.Unrun = append(c.Ran, ran), c.Unrun[1:]
	}
	return c, nil
}

// checksLeft returns how long the checks of a run may take together.
func checksLeft(run *run, t tasks.Task) time.Duration {
	if t.Options.Limit <= 0 {
		return verifyAtMost
	}
	return min(verifyAtMost, max(verifyAtLeast, t.Options.Limit-run.result.Duration))
}

// verificationCommands lists the commands of a task's repository.
func (b *publisher) verificationCommands(ctx context.Context, t tasks.Task, p place) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, askCommandsFor)
	defer cancel()
	if b.Commands == nil {
		return nil, nil
	}
	return b.Commands(ctx, t.Repo, p.Clone.Base)
}

// end returns the end of a text, in whole lines if it has several.
func end(s string, n int) string {
	if len(s) <= n {
		return s
	}
	s = s[len(s)-n:]
	if _, whole, found := strings.Cut(s, "\n"); found {
		return whole
	}
	return strings.ToValidUTF8(s, "")
}
