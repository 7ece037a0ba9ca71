package autofix

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"

	"github.com/errand-fleet/errand/forge"
	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/internal/untrusted"
	"github.com/errand-fleet/errand/internal/words"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/github/subject"
	"github.com/errand-fleet/errand/tasks/github/thread"
)

// After one check has failed, errand waits for the others, up to this time and with growing pauses. A check that has
// not ended by then may never end, for example one that waits for a person.
const (
	checksPatience = 2 * time.Hour
	checksPause    = 30 * time.Second
	maxChecksPause = 5 * time.Minute
)

// untilChecks returns when to read the checks again, or false if the wait since then was long enough.
func untilChecks(since, now time.Time) (time.Time, bool) {
	waited := now.Sub(since)
	return now.Add(min(max(checksPause, waited/4), maxChecksPause)), waited < checksPatience
}

// Check is an event about a check, or a suite of checks, of one commit.
type Check struct {
	thread.Ref
	Event            string // GitHub's name of it
	Name, Conclusion string
	Head             string   // the commit
	Branches         []string // that contain it
}

// Failed submits a fix of failed checks on errand's pull request.
func (f *Fixes) Failed(ctx context.Context, d *desk.Desk, c Check) (response string, err error) {
	if !hub.IsFailure(c.Conclusion) {
		return "", subject.IgnoreQuietly("No check has failed.")
	}
	if c.Name == hub.IndicatorName {
		return "", subject.IgnoreQuietly("It is errand's own check.")
	}
	own := slices.IndexFunc(c.Branches, ownBranches.MatchString)
	if own < 0 {
		return "", subject.IgnoreQuietly("It is not on one of errand's branches.")
	}
	pr, err := f.ownPull(ctx, c.Ref, c.Branches[own], c.Head)
	if err != nil {
		return "", err
	}
	about := subject.OfPull(c.Repo, pr)
	about.Installation, about.Action = c.Installation, c.Event
	return f.submit(ctx, d, subject.KindCheckFailure, pr, about)
}

// MissedFailures submits the fix of the failed checks of a pull request that a poll has found.
func (f *Fixes) MissedFailures(ctx context.Context, d *desk.Desk, w Work) error {
	c, err := w.CIStatus(ctx, w.About.Head)
	if err != nil || len(c.Failed) == 0 || c.Pending > 0 || isBillingProblem(c) {
		return err
	}
	return f.submitMissed(ctx, d, subject.KindCheckFailure, failureKey(c, w.About.Head), w)
}

// ownPull finds errand's open pull request of a branch. It returns an ignored if no pull request has this head.
func (f *Fixes) ownPull(ctx context.Context, r thread.Ref, branch, head string) (*github.PullRequest, error) {
	t, err := f.API.Reach(ctx, r)
	if err != nil {
		return nil, err
	}
	me, err := t.Forge.Login(ctx)
	if err != nil {
		return nil, err
	}
	list, _, err := t.GH.PullRequests.List(ctx, t.Owner, t.Name,
		&github.PullRequestListOptions{State: "open", Head: t.Owner + ":" + branch})
	if err != nil {
		return nil, fmt.Errorf("list pull requests of %s: %w", branch, err)
	}
	for _, pr := range list {
		if pr.GetHead().GetRef() == branch && pr.GetHead().GetSHA() == head && !hub.IsFork(pr) &&
			pr.GetUser().GetLogin() == me {
			return pr, nil
		}
	}
	return nil, subject.IgnoreQuietly("It is not the head of one of errand's pull requests.")
}

// failureKey identifies a set of failures of one head.
func failureKey(c forge.CIStatus, head string) string {
	var names []string
	for _, f := range c.Failed {
		names = append(names, f.Name)
	}
	return fmt.Sprintf("checks %s %x", head,
		sha256.Sum256([]byte(strings.Join(names, "\n"))))[:len("checks ")+len(head)+9]
}

// billingPhrases occur in GitHub's output for jobs that did not start because of a billing problem. No commit can fix
// these.
var billingPhrases = []string{"account payments have failed", "spending limit", "billing"}

func isBillingProblem(c forge.CIStatus) bool {
	return len(c.Failed) > 0 && !slices.ContainsFunc(c.Failed, func(f forge.FailedCheck) bool {
		return !slices.ContainsFunc(billingPhrases, func(s string) bool {
			return strings.Contains(strings.ToLower(f.Output), s) && strings.Contains(f.Output, "not started")
		})
	})
}

// checksOrder is the prompt for fixing failed checks.
const checksOrder = `Checks have failed on the head of this pull request, %s. Find out why, starting with their output below, and fix the cause; do not weaken the check. If the base branch has moved and merges cleanly, merge it first. If this change did not cause the failure, or no commit can fix it, change nothing and say so. Run the failed checks, as far as they can be run here, then commit. In your answer say for each check what was wrong and what you did.`

// ChecksPrompt waits until all checks have finished, and gives the agent the output of the failed ones.
func (f *Fixes) ChecksPrompt(ctx context.Context, k Work) (string, error) {
	head := k.Pull.GetHead().GetSHA()
	c, err := k.CIStatus(ctx, head)
	if err != nil {
		return "", err
	}
	if len(c.Failed) == 0 {
		return "", thread.Refuse("No check of " + hub.ShortSHA(head) + " has failed.")
	}
	if isBillingProblem(c) {
		return "", thread.Refuse("The checks of " + hub.ShortSHA(head) + " did not start because of a billing problem.")
	}
	again, wait := untilChecks(thread.AskedAt(k.Task.ID), k.Now())
	if k.About.Asked == nil && c.Pending > 0 && wait {
		why := "other checks of " + hub.ShortSHA(head) + " are still running"
		return "", &tasks.ErrLater{At: again, Why: why, Tell: "checks"}
	}
	if err := f.Memory.OnceUnasked(ctx, k.Task, k.About, failureKey(c, head)); err != nil {
		return "", err
	}
	order := fmt.Sprintf(checksOrder, hub.ShortSHA(head)) + k.About.Added(k.Task)
	return order + "\n\n" + k.failedOutput(ctx, c.Failed), nil
}

// Bounds of the output of failed checks in a prompt.
const (
	maxFailures = 8     // checks
	maxSaid     = 4_000 // characters of one check's output
)

// failedOutput formats the output of failed checks, each in its own fence.
func (k Work) failedOutput(ctx context.Context, failed []forge.FailedCheck) string {
	var b strings.Builder
	for _, one := range failed[:min(len(failed), maxFailures)] {
		text := untrusted.Cut(words.Markdown(one.Output, "").All, maxSaid)
		if one.Job != 0 {
			log, err := k.Forge.JobLog(ctx, k.GH, k.About.Repo, one.Job)
			if err != nil { // it may have expired; the check run itself has a summary
				k.Log.Warn("read log of check", "run", k.Task.ID, "check", one.Name, "err", err)
			}
			text = strings.TrimSpace(text + "\n\n" + untrusted.Plain(log))
		}
		b.WriteString(untrusted.Quote("check "+untrusted.Line(one.Name, 100),
			fmt.Sprintf("%s\n\n%s", untrusted.Line(one.URL, 300), text)))
	}
	if more := len(failed) - maxFailures; more > 0 {
		fmt.Fprintf(&b, "%d more checks have failed.\n", more)
	}
	return b.String()
}
