package publish

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/errand-fleet/errand/environment"
	"github.com/errand-fleet/errand/forge"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/worker/logline"
	"github.com/errand-fleet/errand/tasks/worker/place"
)

// proposeFor is how long an answer waits for its pull request.
const proposeFor = 3 * time.Minute

// maxTemplate bounds the template of a description, in bytes. It is stored with the ending.
const maxTemplate = 10_000

// proposeAll opens or updates the pull requests that are due. Then each gets links to those that were not open before
// it.
func (b *Publisher) proposeAll(ctx context.Context, t tasks.Task, e *tasks.Ending) (err error) {
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
func (b *Publisher) propose(ctx context.Context, t tasks.Task, p *tasks.Published, summary string) error {
	proposal := b.proposal(t, p.Work, summary)
	proposal.Together, proposal.Number = p.Together, p.PullRequest.Number
	pr, err := b.Forge.Publish(ctx, proposal)
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
	if conversation := fmt.Sprintf("%s/%s#%d", b.Forge.Name(), p.Repo, pr.Number); conversation != t.Thread {
		err := b.Store.Threads.Alias(ctx, conversation, t.Thread)
		logline.Warn(b.Log, err, "join threads", "run", t.ID, "thread", t.Thread)
	}
	return nil
}

// proposal describes published work for a forge.
func (b *Publisher) proposal(t tasks.Task, work tasks.Work, summary string) forge.Proposal {
	p := forge.Proposal{
		Repo: work.Repo, Branch: work.Branch, Commit: work.Commit, Base: work.Base, Title: work.Title,
		Fixes: work.Fixes, Run: t.ID, Thread: t.Thread, Source: t.Source, Asker: b.Policy.People.NameOf(t),
		Verification: work.Verification.Markdown(), Summary: summary, Reviewer: b.account(t), Style: work.Style,
	}
	if b.ConsoleURL != "" {
		p.RunURL = b.ConsoleURL + "/tasks/" + t.ID
	}
	if t.Source != b.Forge.Name() && p.Reviewer != p.Asker {
		p.AskerAccount = p.Reviewer
	}
	return p
}

// OpenDue opens the pull requests when an ending is posted, as far as that failed when the ending was stored. The
// answer waits at most proposeFor for them and for their links.
func (b *Publisher) OpenDue(ctx context.Context, t tasks.Task, e *tasks.Ending) error {
	lacks := func(p *tasks.Published) bool {
		return p.Due || p.PullRequest.Number > 0 && !slices.Equal(p.Together, e.Beside(p))
	}
	if !slices.ContainsFunc(e.Publications(), lacks) {
		return nil
	}
	var err error
	if b.Forge != nil {
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

// style returns how the repository wants the pull request to be opened.
func (b *Publisher) style(ctx context.Context, p place.Place) forge.Style {
	wanted := p.Environment.PullRequests
	s := forge.Style{Title: wanted.Title, Labels: wanted.Labels, Ready: wanted.Draft == "false"}
	if wanted.Template == "true" {
		var err error
		s.Template, err = b.Workspace.BaseFile(ctx, p.Clone, environment.TemplateFile, maxTemplate)
		logline.Warn(b.Log, err, "read template of pull requests", "repo", p.Clone.Repo)
	}
	return s
}
