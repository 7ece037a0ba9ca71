package github

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/errand-fleet/errand/forge"
	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/internal/untrusted"
	"github.com/errand-fleet/errand/tasks"
)

// How long the checks that still run are waited for once one has failed, and how often they are looked at meanwhile: the longer, the less often.
// A check that has not ended by then never may, such as one that waits for a person.
const (
	checksPatience = 2 * time.Hour
	checksPause    = 30 * time.Second
	maxChecksPause = 5 * time.Minute
)

// untilChecks is when to look again at the checks of a head that were waited for since then; false when that was long enough.
func untilChecks(since, now time.Time) (time.Time, bool) {
	waited := now.Sub(since)
	return now.Add(min(max(checksPause, waited/4), maxChecksPause)), waited < checksPatience
}

// checkEvent is what the four events about checks bring.
type checkEvent struct {
	Action string `json:"action"`
	Repo   struct {
		FullName string `json:"full_name"`
	} `json:"repository"`
	Install struct {
		ID int64 `json:"id"`
	} `json:"installation"`

	CheckRun    checkOf `json:"check_run"`
	CheckSuite  checkOf `json:"check_suite"`
	WorkflowRun checkOf `json:"workflow_run"`

	// A status stands beside the repository.
	SHA      string `json:"sha"`
	State    string `json:"state"`
	Context  string `json:"context"`
	Branches []struct {
		Name string `json:"name"`
	} `json:"branches"`
}

// checkOf is one check, or many of one commit.
type checkOf struct {
	Name       string `json:"name"`
	SHA        string `json:"head_sha"`
	Branch     string `json:"head_branch"`
	Conclusion string `json:"conclusion"`
	Suite      struct {
		Branch string `json:"head_branch"`
	} `json:"check_suite"`
}

// checked submits the mending of checks that have failed on a pull request of ours.
func (s *Source) checked(ctx context.Context, desk *tasks.Desk, d delivery) (said string, err error) {
	e := d.check
	o := origin{Repo: e.Repo.FullName, Installation: e.Install.ID}
	if err := s.worksOn(o.Repo); err != nil {
		return "", err
	}
	c := e.CheckRun
	for _, other := range []checkOf{e.CheckSuite, e.WorkflowRun, {SHA: e.SHA, Name: e.Context, Conclusion: e.State}} {
		if c.SHA == "" {
			c = other
		}
	}
	branches := []string{c.Branch, c.Suite.Branch}
	for _, b := range e.Branches {
		branches = append(branches, b.Name)
	}
	own := slices.IndexFunc(branches, func(b string) bool { return strings.HasPrefix(b, ownBranches) })
	switch {
	case !hub.IsFailure(c.Conclusion):
		return "", ignored{"No check has failed.", slog.LevelDebug}
	case c.Name == hub.IndicatorName:
		return "", ignored{"It is our own check.", slog.LevelDebug}
	case own < 0:
		return "", ignored{"It is not on a branch of errand's.", slog.LevelDebug}
	}
	pr, err := s.ownPull(ctx, o, branches[own], c.SHA)
	if err != nil {
		return "", err
	}
	about := asItIs(o.Repo, pr)
	about.Installation, about.Action = o.Installation, d.event
	return s.mend(ctx, desk, kindCheckFailure, "Failed checks", pr, about)
}

// failureKey identifies the same failures of the same head.
func failureKey(c forge.CIStatus, head string) string {
	var names []string
	for _, f := range c.Failed {
		names = append(names, f.Name)
	}
	return fmt.Sprintf("checks %s %x", head, sha256.Sum256([]byte(strings.Join(names, "\n"))))[:len("checks ")+len(head)+9]
}

// ciStatus reads the checks of a head.
func (s *Source) ciStatus(ctx context.Context, o origin, head string) (forge.CIStatus, error) {
	ci, err := s.forge.CIStatusFor(ctx, o.Repo, o.Installation, head)
	return ci, tasks.FromForge(err)
}

// unpaid is what GitHub says of jobs that it has not begun for want of money: nobody can mend that by a commit.
var unpaid = []string{"account payments have failed", "spending limit", "billing"}

func isUnpaid(c forge.CIStatus) bool {
	return len(c.Failed) > 0 && !slices.ContainsFunc(c.Failed, func(f forge.FailedCheck) bool {
		return !slices.ContainsFunc(unpaid, func(s string) bool {
			return strings.Contains(strings.ToLower(f.Output), s) && strings.Contains(f.Output, "not started")
		})
	})
}

// mechanic is what the agent is asked for when checks have failed.
const mechanic = `Checks have failed on the head of this pull request, %s. Find out why, beginning with what they said below, and mend it: the cause, not the check. Merge the base branch first if it has moved and the merge is clean. If the failure is not of this change, or not to be mended by a commit, change nothing and say so. Run the checks that failed, as far as they can be run here, then commit. In your answer say for each check what was wrong and what you did.`

// briefChecks waits until all checks have finished, and hands on what the failed ones said.
func (s *Source) briefChecks(ctx context.Context, t tasks.Task, o origin, _ string) (tasks.Brief, error) {
	k, err := s.mending(ctx, t, o)
	if err != nil {
		return tasks.Brief{}, err
	}
	head := k.pr.GetHead().GetSHA()
	c, err := s.ciStatus(ctx, o, head)
	if err != nil {
		return tasks.Brief{}, err
	}
	again, wait := untilChecks(askedAt(t.ID), s.cfg.Now())
	switch {
	case len(c.Failed) == 0:
		return tasks.Brief{}, &tasks.InputError{Sentence: "No check of " + hub.ShortSHA(head) + " has failed."}
	case isUnpaid(c):
		return tasks.Brief{}, &tasks.InputError{Sentence: "The checks of " + hub.ShortSHA(head) + " were not started for want of payment."}
	case o.Asked == nil && c.Pending > 0 && wait:
		return tasks.Brief{}, &tasks.ErrLater{At: again, Why: "other checks of " + hub.ShortSHA(head) + " still run", Tell: "checks"}
	}
	if err := k.once(ctx, failureKey(c, head)); err != nil {
		return tasks.Brief{}, err
	}
	return k.mended(fmt.Sprintf(mechanic, hub.ShortSHA(head)) + o.added(t) + "\n\n" + k.said(ctx, c.Failed)), nil
}

// What the agent is told of failed checks: enough to begin with.
const (
	maxFailures = 8     // checks
	maxSaid     = 4_000 // characters of what a check says of itself
)

// said tells what failed checks said, each in a fence of its own.
func (k talk) said(ctx context.Context, failed []forge.FailedCheck) string {
	var b strings.Builder
	for _, f := range failed[:min(len(failed), maxFailures)] {
		text := untrusted.Cut(untrusted.Visible(f.Output), maxSaid)
		if f.Job != 0 {
			log, err := k.forge.JobLog(ctx, k.gh, k.o.Repo, f.Job)
			if err != nil { // it may have expired, and the check itself says the gist
				k.log.Warn("read log of check", "run", k.task.ID, "check", f.Name, "err", err)
			}
			text = strings.TrimSpace(text + "\n\n" + untrusted.Plain(log))
		}
		b.WriteString(untrusted.Quote("check "+untrusted.Line(f.Name, 100), fmt.Sprintf("%s\n\n%s", untrusted.Line(f.URL, 300), text)))
	}
	if more := len(failed) - maxFailures; more > 0 {
		fmt.Fprintf(&b, "%d more checks have failed.\n", more)
	}
	return b.String()
}
