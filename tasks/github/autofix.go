package github

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"

	"github.com/errand-fleet/errand/agent"
	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/thread"
)

// This file submits automatic work on errand's own pull requests: fixing failed checks, resolving conflicts, answering
// reviews. An event or the poller submits a task. The brief of the task reads the current state, decides whether there
// is anything to do, and records the work as begun, so extra events do no harm.

// ownBranches matches the branches that errand pushes to: those with the default prefix, and those of threads, which
// begin with the name of a source.
var ownBranches = regexp.MustCompile(`^errand/|^([a-z0-9][a-z0-9_-]*/)+(slack|github|chat|schedule|hook)-[0-9a-f]{10}$`)

// isAutomatic reports whether a task is automatic.
func isAutomatic(t tasks.Task, o origin) bool { return o.Asked == nil || t.Kind == kindReviewResponse }

// endsSilently reports whether the ending of an automatic task is not posted, because there was nothing to do. The
// message that the limit is reached is posted.
func endsSilently(e tasks.Ending) bool {
	nothing := slices.Contains([]tasks.EndingKind{tasks.Refused, tasks.Superseded, tasks.Withdrawn}, e.Kind)
	return nothing && e.Reason != limitReached
}

// autofix submits automatic work on a pull request. At most one task of a kind runs for a head.
func (i *interpreter) autofix(
	ctx context.Context, kind string, pr *github.PullRequest, o origin,
) (response string, err error) {
	if i.watched(o.Repo) {
		return "", ignored{onlyWatched, slog.LevelDebug}
	}
	key := kind + " " + o.Head
	p, err := i.memory.state(ctx, o.Ref)
	if err != nil {
		return "", err
	}
	old, over := p.Begun[key], false
	if old != "" {
		st, err := i.desk.Status(ctx, old)
		if over = errors.Is(err, tasks.ErrNotFound) || st.Ending != nil; err != nil && !over {
			return "", err
		}
	}
	id := tasks.NewID(i.now(), sourceName, fmt.Sprintf("%s-%d-%s", kind, o.Number, hub.ShortSHA(o.Head)))
	err = i.memory.changeState(ctx, o.Ref, func(p *prState) error {
		// The first task over the limit is submitted, because its brief posts that the limit is reached.
		if why := p.automationBlocked(); why != "" && (why != limitReached || p.Begun[limitReached] != "") {
			return ignored{why, slog.LevelInfo}
		}
		if now := p.Begun[key]; now != "" && (now != old || !over) {
			id = now
		} else {
			p.takeOver(key, id)
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	t, err := i.settings.applyTo(ctx, draft{Task: tasks.Task{
		ID: id, Source: sourceName, Kind: kind, Thread: "github/" + o.String(), Class: tasks.Background,
		Profile: profileOf(pr, agent.Write), Repo: o.Repo, Ref: fmt.Sprintf("refs/pull/%d/head", o.Number),
		Actor: pr.GetUser().GetLogin(), Unasked: true, Prompt: fmt.Sprintf("%s of pull request #%d of %s: %s",
			kinds[kind].title, o.Number, o.Repo, o.Title),
	}, origin: o, pr: pr})
	if err != nil {
		return "", err
	}
	return i.submitted(ctx, t)
}

// outdated returns why automatic work is not done any more, or "": the head has changed, or the repository's settings
// turn that work off.
func (k conversation) outdated() string {
	head := k.pr.GetHead().GetSHA()
	switch {
	case !kinds[k.task.Kind].automatic:
		return ""
	case k.pr.GetState() == "closed":
		return "The pull request is closed."
	case k.o.Asked == nil && head != k.o.Head:
		return supersededBy + hub.ShortSHA(head) + "."
	case isAutomatic(k.task, k.o) && !k.settings.enabled(k.task.Kind):
		return bySettings + "switch " + k.task.Kind + " off."
	}
	return ""
}

// once refuses an unrequested task if another task has done the work named by key, or if the limit of automatic work
// is reached. It always allows a requested task.
func (k conversation) once(ctx context.Context, key string) error {
	if !isAutomatic(k.task, k.o) {
		return nil
	}
	return k.b.memory.once(ctx, k.o.Ref, key, k.task.ID)
}

// once records a task under key among the automatic work on a pull request. It returns an *tasks.InputError if the task
// must not run.
func (m memory) once(ctx context.Context, r thread.Ref, key, task string) error {
	var why string
	err := m.changeState(ctx, r, func(p *prState) error {
		why = p.once(key, task)
		return nil
	})
	if err == nil && why != "" {
		err = thread.Refuse(why)
	}
	return err
}

// once records the task under key, or returns why it must not run.
func (p *prState) once(key, task string) (why string) {
	switch why = p.automationBlocked(); {
	case p.Begun[key] == task:
		return "" // the task is briefed again
	case why == limitReached && !p.begin(limitReached, task):
		return "A person has already been asked to continue."
	case why != "":
		return why
	case !p.begin(key, task):
		return "This was already handled."
	}
	p.Rounds++
	return ""
}

// resetRounds resets the count of automatic work, because a person has requested something.
func (m memory) resetRounds(ctx context.Context, r thread.Ref) error {
	return m.changeState(ctx, r, func(p *prState) error {
		p.resetRounds()
		return nil
	})
}

func (p *prState) resetRounds() {
	p.Rounds = 0
	delete(p.Begun, limitReached)
}

// handleReview submits a task that answers a review: feedback on errand's pull request is for errand without a mention.
func (i *interpreter) handleReview(ctx context.Context, h remarkEvent) (response string, err error) {
	me, err := i.api.Forge.Login(ctx)
	if err != nil {
		return "", fmt.Errorf("read review: %w", err)
	}
	switch {
	case h.Pull.GetUser().GetLogin() != me:
		return "", ignored{"The pull request is not errand's.", slog.LevelDebug}
	case i.watched(h.Repo):
		return "", ignored{onlyWatched, slog.LevelDebug}
	case !i.gate.mayCommand(h.Author, h.Bot).Allowed:
		return "", ignored{"The author is a bot.", slog.LevelDebug}
	case h.said.asks() || h.said.mistaken:
		return "", ignored{"It is a request to errand and is handled as such.", slog.LevelDebug}
	case strings.EqualFold(h.Verdict, "approved"), strings.EqualFold(h.Verdict, "dismissed"):
		return "", ignored{"The review has no text.", slog.LevelDebug}
	}
	if err := i.gate.limitRate(ctx, h); err != nil {
		return "", err
	}
	t, err := i.requestedTask(ctx, h, work{kind: kindReviewResponse, profile: agent.Write})
	if err != nil {
		return "", err
	}
	t.Prompt = cmp.Or(h.said.rest, "See the comments on the lines.")
	t.Class = tasks.Background // unrequested work can wait
	return i.submitted(ctx, t)
}

// responseOrder is the prompt for answering a review of the agent's work.
const responseOrder = `This pull request is your work, and a reviewer has commented on it. Go through the points of the review. Check each one in the code, fix those that are right, run the affected tests, and commit. If a point is wrong or is a question, do not change anything for it; answer it. In your answer, list the points with one or two lines each.`

// responsePrompt gives the agent the review.
func (k conversation) responsePrompt(ctx context.Context) (string, error) {
	remarks, err := k.unanswered(ctx)
	if err != nil {
		return "", err
	}
	if !remarks.asksMore() {
		return "", thread.Refuse("Everything in the review is a request to errand and is handled as such.")
	}
	if err := k.once(ctx, "review "+k.o.Asked.Identity()); err != nil {
		return "", err
	}
	return responseOrder + "\n\n" + remarks.prompt(k), nil
}

// GitHub computes whether a pull request can be merged only on request, and has the result some seconds later.
const (
	mergePause    = 10 * time.Second
	mergePatience = 5 * time.Minute
)

// conflictOrder is the prompt for resolving conflicts.
const conflictOrder = `This pull request has merge conflicts with its base, origin/%s. Merge origin/%[1]s and resolve each conflict so that the intent of both sides is kept. Read the history of both sides before you decide. Do not rebase, and change nothing else. Build and run the tests, then commit the merge. In your answer say for each conflict what both sides wanted and how you resolved it. If you cannot tell what is right, abort the merge and say what has to be decided.`

// conflictPrompt checks that there are conflicts.
func (k conversation) conflictPrompt(ctx context.Context) (string, error) {
	me, err := k.Forge.Login(ctx)
	if err != nil {
		return "", k.BriefError("read "+k.o.String(), err)
	}
	now := k.Now()
	if k.pr.Mergeable == nil && now.Before(thread.AskedAt(k.task.ID).Add(mergePatience)) {
		why := "GitHub is still computing whether " + k.o.String() + " can be merged"
		return "", &tasks.ErrLater{At: now.Add(mergePause), Why: why, Tell: "merge"}
	}
	if k.pr.Mergeable == nil || k.pr.GetMergeable() {
		return "", thread.Refuse("There are no conflicts with " + k.o.Base + ".")
	}
	asked := k.o.Asked != nil || ownWork(k.pr, me)
	key, by, err := conflicts(ctx, k.Thread, k.pr, asked)
	if err != nil {
		return "", err
	}
	if !asked {
		if !hasLabel(k.pr.Labels, conflictsLabel) {
			return "", thread.Refuse("The pull request no longer has the label " + conflictsLabel + ".")
		}
		err := k.b.gate.mustWrite(ctx, k.Ref, by)
		if _, refused := errors.AsType[*tasks.InputError](err); refused { // for good: no poll submits it again
			err = cmp.Or(k.b.memory.changeState(ctx, k.Ref, func(p *prState) error {
				p.begin(key, k.task.ID)
				return nil
			}), err)
		}
		if err != nil {
			return "", err
		}
	}
	if err := k.once(ctx, key); err != nil {
		return "", err
	}
	return fmt.Sprintf(conflictOrder, k.o.Base) + k.o.added(k.task), nil
}

// conflicts returns the key for the conflicts of a head with its base: after one attempt, one of the two has to move
// before the next. The base SHA in a pull request itself is that of its last push, so the branch is read. Unless the
// work is asked for anyway, the key names who added the label last, or ghost if unknown, which only the events contain.
func conflicts(ctx context.Context, t thread.Thread, pr *github.PullRequest, asked bool) (key, by string, err error) {
	base, _, err := t.GH.Repositories.GetBranch(ctx, t.Owner, t.Name, pr.GetBase().GetRef(), 0)
	if err != nil {
		return "", "", t.BriefError("read branch "+pr.GetBase().GetRef()+" of "+t.Repo, err)
	}
	key = "conflict " + pr.GetHead().GetSHA() + " " + base.GetCommit().GetSHA()
	if asked {
		return key, "", nil
	}
	last, err := t.LastEvent(ctx, func(e *github.IssueEvent) bool { return isLabelling(e, conflictsLabel) })
	by = cmp.Or(last.GetActor().GetLogin(), ghost)
	return key + " " + by, by, err
}

func isLabelling(e *github.IssueEvent, label string) bool {
	return e.GetEvent() == actionLabeled && isLabel(e.GetLabel().GetName(), label)
}

// conflictsLabel requests the resolution of conflicts on a pull request of others, if a person with write access sets
// it.
const conflictsLabel = "errand:resolve-conflicts"

// isLabel reports whether two names are those of one label. GitHub keeps the case in which a label was created, and
// otherwise does not distinguish it.
func isLabel(name, label string) bool { return strings.EqualFold(name, label) }

// hasLabel reports whether a label is among those of a pull request or an issue.
func hasLabel(labels []*github.Label, label string) bool {
	return slices.ContainsFunc(labels, func(l *github.Label) bool { return isLabel(l.GetName(), label) })
}

// ghost is the name that GitHub shows for deleted accounts. It has no permissions.
const ghost = "ghost"

// ownWork reports whether errand opened a pull request for its own work. Then only errand pushes to its branch.
func ownWork(pr *github.PullRequest, me string) bool {
	return ownBranches.MatchString(pr.GetHead().GetRef()) && !hub.IsFork(pr) && pr.GetUser().GetLogin() == me
}
