package github

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"

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
	Repo struct {
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
	var e checkEvent
	if err := json.Unmarshal(d.payload, &e); err != nil {
		return "", unreadable{fmt.Errorf("read payload: %w", err)}
	}
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
	case !failed(c.Conclusion):
		return "", ignored{"No check has failed.", slog.LevelDebug}
	case c.Name == lightName:
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
	return s.mend(ctx, desk, "check_failure", "Failed checks", pr, about)
}

// failed reports whether a conclusion, or the state of a status, asks for work.
func failed(conclusion string) bool {
	return slices.Contains([]string{"failure", "error", "timed_out", "startup_failure"}, conclusion)
}

// checks are the checks of a commit, without ours.
type checks struct {
	pending int
	failed  []failure
}

// failure is a check that has failed.
type failure struct {
	name, url, said string
	job             int64 // of GitHub Actions; 0: it is another's
}

// checks reads them all: check runs, which are Apps', and statuses.
func (s *Source) checks(ctx context.Context, gh *github.Client, o origin, head string) (checks, error) {
	var c checks
	owner, name := o.path()
	runs := &github.ListCheckRunsOptions{Filter: new("latest"), ListOptions: github.ListOptions{PerPage: 100}}
	for {
		page, resp, err := gh.Checks.ListCheckRunsForRef(ctx, owner, name, head, runs)
		if lasting(err) {
			break // a token that may not see them
		}
		if err != nil {
			return c, s.sorted("read the checks of "+short(head), err)
		}
		for _, run := range page.CheckRuns {
			c.add(run)
		}
		if resp.NextPage == 0 {
			break
		}
		runs.Page = resp.NextPage
	}
	states := &github.ListOptions{PerPage: 100}
	for {
		page, resp, err := gh.Repositories.GetCombinedStatus(ctx, owner, name, head, states)
		if err != nil {
			return c, s.sorted("read the checks of "+short(head), err)
		}
		for _, st := range page.Statuses {
			switch {
			case st.GetContext() == lightName:
			case failed(st.GetState()):
				c.failed = append(c.failed, failure{name: st.GetContext(), url: st.GetTargetURL(), said: st.GetDescription()})
			case st.GetState() == "pending":
				c.pending++
			}
		}
		if resp.NextPage == 0 {
			break
		}
		states.Page = resp.NextPage
	}
	slices.SortFunc(c.failed, func(a, b failure) int { return strings.Compare(a.name, b.name) })
	return c, nil
}

func (c *checks) add(run *github.CheckRun) {
	switch {
	case run.GetName() == lightName:
	case run.GetStatus() != "completed":
		c.pending++
	case failed(run.GetConclusion()):
		out := run.GetOutput()
		f := failure{
			name: run.GetName(), url: run.GetDetailsURL(), said: strings.TrimSpace(out.GetTitle() + "\n" + out.GetSummary() + "\n" + out.GetText()),
		}
		if run.GetApp().GetSlug() == "github-actions" {
			f.job = run.GetID()
		}
		c.failed = append(c.failed, f)
	}
}

// key is the same for the same failures of the same head.
func (c checks) key(head string) string {
	var names []string
	for _, f := range c.failed {
		names = append(names, f.name)
	}
	return fmt.Sprintf("checks %s %x", head, sha256.Sum256([]byte(strings.Join(names, "\n"))))[:len("checks ")+len(head)+9]
}

// unpaid is what GitHub says of jobs that it has not begun for want of money: nobody can mend that by a commit.
var unpaid = []string{"account payments have failed", "spending limit", "billing"}

func (c checks) unpaid() bool {
	return len(c.failed) > 0 && !slices.ContainsFunc(c.failed, func(f failure) bool {
		return !slices.ContainsFunc(unpaid, func(s string) bool {
			return strings.Contains(strings.ToLower(f.said), s) && strings.Contains(f.said, "not started")
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
	c, err := s.checks(ctx, k.gh, o, head)
	if err != nil {
		return tasks.Brief{}, err
	}
	again, wait := untilChecks(askedAt(t.ID), s.cfg.Now())
	switch {
	case len(c.failed) == 0:
		return tasks.Brief{}, &tasks.InputError{Sentence: "No check of " + short(head) + " has failed."}
	case c.unpaid():
		return tasks.Brief{}, &tasks.InputError{Sentence: "The checks of " + short(head) + " were not started for want of payment."}
	case o.Asked == nil && c.pending > 0 && wait:
		return tasks.Brief{}, &tasks.ErrLater{At: again, Why: "other checks of " + short(head) + " still run", Tell: "checks"}
	}
	if err := k.once(ctx, c.key(head)); err != nil {
		return tasks.Brief{}, err
	}
	return k.mended(fmt.Sprintf(mechanic, short(head)) + o.added(t) + "\n\n" + k.said(ctx, c.failed)), nil
}
