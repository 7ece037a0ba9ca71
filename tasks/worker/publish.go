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
	"github.com/errand-fleet/errand/forge"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/workspace"
)

// How long publishing may take; what is left of that when the worker is to stop, because a drain has to go on; and how long an answer
// waits for its pull request.
const (
	publishFor      = 2 * time.Minute
	publishDraining = 20 * time.Second
	proposeFor      = 3 * time.Minute
)

// branchOf is where the work of a thread is published: always the same branch, without what the thread's name may tell of people.
func branchOf(thread string) string {
	source, _, _ := strings.Cut(thread, "/")
	return fmt.Sprintf("errand/%s-%x", source, sha256.Sum256([]byte(thread)))[:len("errand/")+len(source)+1+10]
}

// publishes reports whether what the task leaves in its clone is published.
func (w *Worker) publishes(t tasks.Task) bool {
	return w.cfg.Publisher != nil && t.Repo != "" && t.Profile == agent.Write
}

// publish pushes what an answered task left in its clone, and tries once to have a pull request for it. What goes wrong is told in the
// ending: it costs neither the answer nor the work, which stays in the clone. Nor does the loss of the claim: whether the ending is still
// ours to give, the store decides.
func (w *Worker) publish(run *run, t tasks.Task, p place, e *tasks.Ending) {
	if p.Branch == "" || e.Kind != tasks.Answered {
		return
	}
	ctx, patience, cancel := publishing(run)
	defer cancel()
	pushed, checks, err := w.push(ctx, patience, run, t, p, e.Result)
	switch {
	case err != nil:
		w.log.Warn("publish work", "run", t.ID, "thread", t.Thread, "err", err)
		said := w.cfg.Policy.Redactor.String(unpublished(err, p.Clone.Dir)) // it may be the remote's words
		e.Published = &tasks.Published{Problem: "The changes were not published: " + said + ". They are kept; ask again here to go on."}
		return
	case pushed.Commit == "":
		return
	}
	e.Published = &tasks.Published{Due: true, Work: tasks.Work{
		Repo: t.Repo, Branch: p.Branch, Commit: pushed.Commit, Base: cmp.Or(p.Into, p.Clone.Base), Title: cmp.Or(pushed.Subject, t.Title()),
		Verification: checks,
	}}
	if pushed.New {
		w.log.Info("work published", "run", t.ID, "thread", t.Thread, "branch", p.Branch, "commit", pushed.Commit)
	}
	if err := w.propose(ctx, t, e); err != nil {
		w.log.Warn("open pull request", "run", t.ID, "thread", t.Thread, "err", err) // the outbox tries again
	}
}

// tellable are the errors of publishing whose words are meant for people.
var tellable = []error{
	workspace.ErrUnfit, workspace.ErrForeign, workspace.ErrRejected, workspace.ErrNotFound, workspace.ErrAuth, errPublishTime, errStuck, errVerifyStuck,
}

var (
	errPublishTime = errors.New("it took too long")
	errStuck       = errors.New("a process of the run could not be ended, and may still change them")
	errVerifyStuck = errors.New("a process of the checks could not be ended, and may still change them")
)

// unpublished is why nothing was published, for people. Other errors are about the worker's machine, of which a post says nothing.
func unpublished(err error, dir string) string {
	if !slices.ContainsFunc(tellable, func(known error) bool { return errors.Is(err, known) }) {
		return "the worker could not do it, and its log says why"
	}
	said := err.Error()
	if dir != "" {
		said = strings.ReplaceAll(said, dir, "the clone")
	}
	return said
}

// publishing is the time for it, which patience measures. It ends at once with the claim.
func publishing(run *run) (_ context.Context, patience *time.Timer, cancel context.CancelFunc) {
	ctx, stop := context.WithCancelCause(run.detached)
	patience = time.AfterFunc(publishFor, func() { stop(errPublishTime) })
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
	return ctx, patience, func() { forget(); patience.Stop(); stop(nil) }
}

// push brings the work to the remote, if this worker may still speak for the task. Right before, when it is known what is pushed, the checks run;
// what they leave behind is not in it. Time stands still meanwhile.
func (w *Worker) push(ctx context.Context, patience *time.Timer, run *run, t tasks.Task, p place, r agent.Result) (_ workspace.Pushed, checks *tasks.Verification, err error) {
	if r.Resources.Stuck > 0 { // git reads files there by their names, and somebody might exchange them
		return workspace.Pushed{}, nil, errStuck
	}
	ours, err := w.store.Threads.Pushed(ctx, t.Repo, p.Branch)
	if err != nil {
		return workspace.Pushed{}, nil, err
	}
	pushed, err := w.workspace.Publish(ctx, p.Clone, workspace.Publication{
		Branch: p.Branch, Message: message(t), TrustedConfig: p.Trusted, Ours: ours,
		Permit: func(_ context.Context, commit string) (err error) {
			patience.Stop()
			if checks, err = w.verify(run, t, p, r.Duration); err != nil {
				return err
			}
			patience.Reset(publishFor)
			held, err := w.persist(run, "publish", func() error { return run.claim.Pushing(run.detached, t.Repo, p.Branch, commit) })
			if err == nil && !held {
				err = errClaimLost
			}
			return err
		},
	})
	if err == nil && pushed.Commit != "" && !pushed.New {
		if some, cerr := w.verificationCommands(ctx, t, p); cerr != nil || len(some) > 0 {
			checks = &tasks.Verification{Before: true}
		}
	}
	return pushed, checks, err
}

// message is that of the commit that uncommitted changes become.
func message(t tasks.Task) string {
	subject := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, t.Title())
	return subject + "\n\n" + trailer(t) + "\n"
}

// trailer is the last line of each commit that a run makes: by it people find the run.
func trailer(t tasks.Task) string { return "Errand-Run: " + t.ID }

// propose has the pull request opened or updated that is due, and lets its conversation join the thread.
func (w *Worker) propose(ctx context.Context, t tasks.Task, e *tasks.Ending) error {
	p := e.Published
	pr, err := w.cfg.Publisher.Publish(ctx, w.proposal(t, p.Work, e.Result.Text))
	err = tasks.FromForge(err)
	if why, ok := errors.AsType[*tasks.InputError](err); ok {
		p.Problem, p.Due = "The changes are on branch "+p.Branch+" of "+p.Repo+", without a pull request: "+why.Sentence, false
		return nil
	}
	if err != nil {
		return fmt.Errorf("open pull request for %s: %w", p.Branch, err)
	}
	p.PullRequest, p.Due = pr, false
	if conversation := fmt.Sprintf("%s/%s#%d", w.cfg.Publisher.Name(), p.Repo, pr.Number); conversation != t.Thread {
		if err := w.store.Threads.Alias(ctx, conversation, t.Thread); err != nil {
			w.log.Warn("join threads", "run", t.ID, "thread", t.Thread, "err", err)
		}
	}
	return nil
}

// proposal describes published work for a forge.
func (w *Worker) proposal(t tasks.Task, work tasks.Work, summary string) forge.Proposal {
	p := forge.Proposal{
		Repo: work.Repo, Branch: work.Branch, Commit: work.Commit, Base: work.Base, Title: work.Title,
		Run: t.ID, Thread: t.Thread, Source: t.Source, Asker: t.Actor, Verification: work.Verification.Markdown(), Summary: summary,
	}
	if w.cfg.ConsoleURL != "" {
		p.RunURL = w.cfg.ConsoleURL + "/tasks/" + t.ID
	}
	if who, known := w.cfg.Policy.People.Find(t.Source, t.Actor); known {
		p.Asker = who.Name
		if t.Source != w.cfg.Publisher.Name() {
			p.AskerAccount = who.Account(w.cfg.Publisher.Name())
		}
	}
	return p
}

// proposeDue does when an ending is posted what could not be done when it was stored. The answer does not wait for it for long.
func (w *Worker) proposeDue(ctx context.Context, t tasks.Task, e *tasks.Ending) error {
	if e.Published == nil || !e.Published.Due {
		return nil
	}
	err := error(nil)
	if w.cfg.Publisher != nil {
		err = w.propose(ctx, t, e)
	}
	if !e.Published.Due {
		return nil
	}
	again := time.Now()
	if wait, ok := errors.AsType[*tasks.ErrLater](err); ok {
		again = wait.At
	}
	if err != nil && again.Before(e.At.Add(proposeFor)) {
		return err
	}
	w.log.Warn("answer without pull request", "run", t.ID, "thread", t.Thread, "err", err)
	e.Published.Problem = "The changes are on branch " + e.Published.Branch + " of " + e.Published.Repo +
		"; a pull request could not be opened for now. Ask again here to have it."
	return nil
}
