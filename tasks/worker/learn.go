package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/environment"
	"github.com/errand-fleet/errand/forge"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/workspace"
)

const (
	// learnBranch is the branch on which errand proposes the hosts that the runs of a repository have reached.
	learnBranch = "errand/egress"
	// learnFor bounds a proposal, which the answer of its run waits for: only a run that has a claim may push.
	learnFor = 30 * time.Second
)

// learning lets one run of the worker at a time propose hosts of a repository, and the others go on. It is safe for
// concurrent use.
type learning struct {
	mu   sync.Mutex
	busy map[string]bool     // repositories for which a run proposes hosts at present
	left map[string][]string // by repository: hosts of runs that met another one
}

// begin returns the hosts that a run is to propose: what it has reached, and what earlier runs have left. If another
// run of the repository proposes some at present, it leaves them for a later one and returns none.
func (l *learning) begin(repo string, reached []string) (hosts []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.busy == nil {
		l.busy, l.left = map[string]bool{}, map[string][]string{}
	}
	hosts = l.left[repo]
	for _, host := range reached {
		if !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	if l.busy[repo] {
		l.left[repo] = hosts
		return nil
	}
	l.busy[repo] = true
	delete(l.left, repo)
	return hosts
}

func (l *learning) end(repo string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.busy, repo)
}

// learn notes the hosts that a part of the run has reached, if they are to be proposed.
func (r *run) learn(e *agent.EgressReport) {
	if e == nil || !e.Learn {
		return
	}
	for _, host := range e.Reached {
		if !slices.Contains(r.reached, host) {
			r.reached = append(r.reached, host)
		}
	}
}

// proposeEgress proposes the hosts that the run has reached, and that no list has, as a draft pull request to the base
// branch of the repository. Later runs add to the same one. Runs for other branches or several repositories propose
// nothing. A failure costs nothing but the proposal: the task's page lists the hosts.
func (b *publisher) proposeEgress(r *run, t tasks.Task, p place) {
	if len(r.reached) == 0 || len(t.Also) > 0 || !b.publishes(t) || r.ctx.Err() != nil {
		return
	}
	if repo, err := b.Policy.Allowed(t.Repo); err != nil || p.Clone.Base != cmp.Or(repo.Base, p.Clone.DefaultBranch) {
		return
	}
	reached := b.learning.begin(t.Repo, r.reached)
	if len(reached) == 0 {
		return
	}
	defer b.learning.end(t.Repo)
	ctx, cancel := publishing(r, learnFor)
	defer cancel()
	pr, err := b.proposeHosts(ctx, r, t, p.Clone, reached)
	switch {
	case err != nil:
		b.Log.Warn("propose egress", "run", t.ID, "repo", t.Repo, "err", err)
	case pr.URL != "":
		r.notice("Proposed the hosts that runs have reached as their egress list: " + pr.URL)
	}
}

// learned are hosts to add to the list of a base branch.
type learned struct {
	text  string // its environment.File
	hosts []string
}

// unlisted returns those of the hosts that neither the fleet's list nor the base branch has, with those that were
// proposed before. It returns none if all of them were proposed.
func (b *publisher) unlisted(ctx context.Context, c workspace.Clone, reached []string) (found learned, err error) {
	if found.text, err = b.Workspace.BaseFile(ctx, c, environment.File, environment.MaxFile); err != nil {
		return found, err
	}
	declared, _ := environment.Parse([]byte(found.text))
	listed := agent.Egress{}.Plus(slices.Concat(b.Policy.Egress.Hosts, declared.Egress.Hosts))
	missing := func(host string) bool {
		known, _ := listed.Allows(host, "443", true)
		return !known && !strings.Contains(host, ":") // a repository cannot list private hosts
	}
	for _, host := range reached {
		if missing(host) {
			found.hosts = append(found.hosts, host)
		}
	}
	ours, err := b.Store.Threads.Pushed(ctx, c.Repo, learnBranch)
	if err != nil || len(ours) == 0 || len(found.hosts) == 0 {
		return found, err
	}
	c.BaseSHA = ours[0]
	before, err := b.Workspace.BaseFile(ctx, c, environment.File, environment.MaxFile)
	if err != nil {
		return found, nil //nolint:nilerr // the branch is gone, so it proposes nothing
	}
	proposed, _ := environment.Parse([]byte(before))
	if !slices.ContainsFunc(found.hosts, func(host string) bool {
		return !slices.Contains(proposed.Egress.Hosts, host)
	}) {
		return learned{}, nil
	}
	for _, host := range proposed.Egress.Hosts {
		if missing(host) && !slices.Contains(found.hosts, host) {
			found.hosts = append(found.hosts, host)
		}
	}
	return found, nil
}

// proposeHosts pushes the base branch's file with the hosts that it lacks, if any, and opens the pull request or
// updates it. own is the clone of the run.
func (b *publisher) proposeHosts(
	ctx context.Context, r *run, t tasks.Task, own workspace.Clone, reached []string,
) (pr forge.PullRequestRef, err error) {
	if found, err := b.unlisted(ctx, own, reached); err != nil || len(found.hosts) == 0 {
		return pr, err
	}
	return b.proposeSettings(ctx, r, t, own.Base, settingsChange{
		branch: learnBranch,
		edit: func(c workspace.Clone) (e edited, err error) {
			found, err := b.unlisted(ctx, c, reached) // the file may have changed since the run began
			if err != nil || len(found.hosts) == 0 {
				return e, err
			}
			e.title = fmt.Sprintf("List the %d hosts that errand's runs reach", len(found.hosts))
			e.summary = "The runs of this repository have reached these hosts, which no list allows yet. Remove " +
				"those that they should not reach. After the merge, an operator can remove `egress: learn`.\n\n- `" +
				strings.Join(found.hosts, "`\n- `") + "`"
			e.text, err = environment.WithHosts(found.text, found.hosts)
			return e, err
		},
	})
}

// settingsChange is a change of a repository's settings that errand proposes on a separate branch.
type settingsChange struct {
	branch string
	edit   func(base workspace.Clone) (edited, error) // returns no text if there is nothing to propose
}

// edited is a new environment.File and the words of its pull request.
type edited struct{ text, title, summary string }

// proposeSettings pushes a change of the file on a base branch, and opens the pull request or updates it.
func (b *publisher) proposeSettings(
	ctx context.Context, r *run, t tasks.Task, base string, change settingsChange,
) (pr forge.PullRequestRef, err error) {
	// No agent writes to the clone of this thread.
	c, err := b.Workspace.Checkout(ctx, workspace.Want{
		Thread: change.branch + "/" + t.Repo, Repo: t.Repo, Ref: "refs/heads/" + base, Base: base,
	})
	if err != nil {
		return pr, err
	}
	e, err := change.edit(c)
	if err != nil || e.text == "" {
		return pr, err
	}
	root, err := os.OpenRoot(c.Dir)
	if err != nil {
		return pr, fmt.Errorf("open clone: %w", err)
	}
	defer root.Close()
	err = errors.Join(root.MkdirAll(path.Dir(environment.File), 0o755),
		root.WriteFile(environment.File, []byte(e.text), 0o644))
	if err != nil {
		return pr, fmt.Errorf("write %s: %w", environment.File, err)
	}
	ours, err := b.Store.Threads.Pushed(ctx, t.Repo, change.branch)
	if err != nil {
		return pr, err
	}
	pushed, err := b.Workspace.Publish(ctx, c, workspace.Publication{
		Branch: change.branch, Message: e.title + "\n\n" + (place{}).trailers(t) + "\n", Ours: ours,
		Author: b.author(ctx, t.Repo),
		Permit: func(_ context.Context, commit string) error {
			return r.claim.Pushing(r.detached, t.Repo, change.branch, commit)
		},
	})
	if err != nil || pushed.Commit == "" {
		return pr, err
	}
	proposal := b.proposal(t, tasks.Work{
		Repo: t.Repo, Branch: change.branch, Commit: pushed.Commit, Base: c.Base, Title: e.title,
	}, e.summary)
	proposal.Thread = change.branch + "/" + t.Repo
	pr, err = b.Publisher.Publish(ctx, proposal)
	if err == nil {
		b.Log.Info("settings proposed", "run", t.ID, "repo", t.Repo, "branch", change.branch, "url", pr.URL)
	}
	return pr, err
}

// lessonBranch is followed by the key of the lesson that the branch proposes.
const lessonBranch = "errand/review-"

// proposeLesson proposes what the team of a repository has taught reviews by dismissing findings, as a draft pull
// request with one more line for the review instructions. Runs for other branches, of untrusted code and in
// repositories that errand may not write to propose nothing. A failure delays only the proposal.
func (b *publisher) proposeLesson(r *run, j job, p place) {
	t := j.task
	learner, ok := j.source.(tasks.Learner)
	if !ok || b.Publisher == nil || t.Repo == "" || t.Profile == agent.Untrusted || r.ctx.Err() != nil {
		return
	}
	repo, err := b.Policy.Allowed(t.Repo)
	if err != nil || repo.Narrow(agent.Write) != agent.Write ||
		p.Clone.Base != cmp.Or(repo.Base, p.Clone.DefaultBranch) {
		return
	}
	ctx, cancel := publishing(r, learnFor)
	defer cancel()
	lesson, err := learner.NextLesson(ctx, t.Repo)
	var pr forge.PullRequestRef
	if err == nil && lesson != nil {
		if pr, err = b.proposeLine(ctx, r, t, p.Clone.Base, *lesson); err == nil {
			err = learner.Proposed(ctx, t.Repo, lesson.Key, pr.URL)
		}
	}
	switch {
	case errors.Is(err, environment.ErrFull):
		r.notice("Could not propose a line for the review instructions: " + err.Error())
	case err != nil:
		b.Log.Warn("propose review instructions", "run", t.ID, "repo", t.Repo, "err", err)
	case pr.URL != "":
		r.notice("Proposed a line for the review instructions: " + pr.URL)
	}
}

// proposeLine opens the pull request of a lesson. If the base branch has the line, there is nothing to propose.
func (b *publisher) proposeLine(
	ctx context.Context, r *run, t tasks.Task, base string, lesson tasks.Lesson,
) (forge.PullRequestRef, error) {
	return b.proposeSettings(ctx, r, t, base, settingsChange{
		branch: lessonBranch + lesson.Key,
		edit: func(c workspace.Clone) (e edited, err error) {
			before, err := b.Workspace.BaseFile(ctx, c, environment.File, environment.MaxFile)
			if err != nil {
				return e, err
			}
			text, err := environment.WithUnwanted(before, lesson.Line)
			if err != nil || text == before {
				return e, err
			}
			return edited{
				text: text, title: "Stop reporting findings that were dismissed",
				summary: "People with write access have dismissed these findings. After the merge, reviews no longer " +
					"report similar findings. To keep them, close this pull request; it is not opened again.\n\n```\n" +
					lesson.Line + "\n```\n\n- " + strings.Join(lesson.Links, "\n- "),
			}, nil
		},
	})
}
