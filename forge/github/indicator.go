package github

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/google/go-github/v60/github"

	"github.com/errand-fleet/errand/internal/untrusted"
)

// IndicatorName is the name of errand's check runs and commit statuses.
const IndicatorName = "errand"

// MaxStatus is GitHub's limit for the description of a commit status, in characters.
const MaxStatus = 140

// StatusIndicator shows beside a commit how a task is going: a check run, or a commit status for a token, which may not create check runs.
type StatusIndicator interface {
	// Show says what is being done.
	Show(ctx context.Context, action string) error
	// Finish shows the verdict. It may be called again.
	Finish(ctx context.Context, v Verdict) error
	// Interval is the least time between two calls of Show.
	Interval() time.Duration
}

// Verdict is what an indicator shows in the end.
type Verdict struct {
	Conclusion, Title, Summary string // of a check run
	Line                       string // of a commit status, of any length
	At                         time.Time
}

// IndicatorTarget says what an indicator is about.
type IndicatorTarget struct {
	Repo, Commit string
	Task         string // ID
	URL          string // where people see the task; different for each task of a commit
}

// OpenIndicator finds the indicator of a task or creates it.
func (f *Forge) OpenIndicator(ctx context.Context, gh *github.Client, t IndicatorTarget) (StatusIndicator, error) {
	owner, name := f.split(t.Repo)
	if f.IsApp() {
		return openCheckRun(ctx, &checkRun{gh: gh, owner: owner, name: name, url: &t.URL}, f.cfg.AppID, t)
	}
	return openCommitStatus(ctx, &commitStatus{gh: gh, owner: owner, name: name, sha: t.Commit, url: t.URL})
}

// NoIndicator is the indicator where GitHub allows none.
type NoIndicator struct{}

func (NoIndicator) Show(context.Context, string) error    { return nil }
func (NoIndicator) Finish(context.Context, Verdict) error { return nil }
func (NoIndicator) Interval() time.Duration               { return time.Minute }

// checkRun is the indicator of an App.
type checkRun struct {
	gh          *github.Client
	owner, name string
	id          int64
	url         *string
}

// openCheckRun finds the task's check run by its external ID, in whatever state it is, or creates one.
func openCheckRun(ctx context.Context, c *checkRun, app int64, t IndicatorTarget) (StatusIndicator, error) {
	opt := &github.ListCheckRunsOptions{
		CheckName: new(IndicatorName), Filter: new("all"), AppID: &app, ListOptions: github.ListOptions{PerPage: 100},
	}
	for run, err := range Pages(&opt.ListOptions, same[*github.CheckRun], func() ([]*github.CheckRun, *github.Response, error) {
		page, resp, err := c.gh.Checks.ListCheckRunsForRef(ctx, c.owner, c.name, t.Commit, opt)
		if err != nil {
			return nil, nil, err
		}
		return page.CheckRuns, resp, nil
	}) {
		if err != nil {
			return nil, fmt.Errorf("list check runs of %s: %w", ShortSHA(t.Commit), err)
		}
		if run.GetExternalID() == t.Task && run.GetApp().GetID() == app {
			c.id = run.GetID()
			return c, nil
		}
	}
	run, _, err := c.gh.Checks.CreateCheckRun(ctx, c.owner, c.name, github.CreateCheckRunOptions{
		Name: IndicatorName, HeadSHA: t.Commit, ExternalID: &t.Task, DetailsURL: c.url, Status: new("in_progress"),
		Output: output("Reviewing", "The agent is about to start."),
	})
	if err != nil {
		return nil, fmt.Errorf("create check run of %s: %w", ShortSHA(t.Commit), err)
	}
	c.id = run.GetID()
	return c, nil
}

func (c *checkRun) Interval() time.Duration { return 15 * time.Second }

// Show also restarts a check run that was finished, for a task that is retried.
func (c *checkRun) Show(ctx context.Context, action string) error {
	return c.update(ctx, github.UpdateCheckRunOptions{Status: new("in_progress"), Output: output("Reviewing", action)})
}

func (c *checkRun) Finish(ctx context.Context, v Verdict) error {
	return c.update(ctx, github.UpdateCheckRunOptions{
		Status: new("completed"), Conclusion: &v.Conclusion, CompletedAt: &github.Timestamp{Time: v.At}, Output: output(v.Title, v.Summary),
	})
}

func (c *checkRun) update(ctx context.Context, u github.UpdateCheckRunOptions) error {
	u.Name, u.DetailsURL = IndicatorName, c.url
	if _, _, err := c.gh.Checks.UpdateCheckRun(ctx, c.owner, c.name, c.id, u); err != nil {
		return fmt.Errorf("update check run %d: %w", c.id, err)
	}
	return nil
}

func output(title, summary string) *github.CheckRunOutput {
	return &github.CheckRunOutput{Title: &title, Summary: &summary}
}

// commitStatus is the indicator of a token. GitHub keeps every status ever set, shows the last one of a context, and takes at most 1,000 per
// commit. Hence the long interval, and the check of the present status before the final one. The target URL identifies the task.
type commitStatus struct {
	gh          *github.Client
	owner, name string
	sha, url    string
}

// openCommitStatus sets the status to pending, unless it is the task's already.
func openCommitStatus(ctx context.Context, c *commitStatus) (StatusIndicator, error) {
	now, err := c.present(ctx)
	if err != nil {
		return nil, err
	}
	if now.GetTargetURL() == c.url {
		return c, nil
	}
	return c, c.set(ctx, "pending", "Reviewing")
}

func (c *commitStatus) Interval() time.Duration { return time.Minute }

func (c *commitStatus) Show(ctx context.Context, action string) error {
	return c.set(ctx, "pending", untrusted.Cut(action, MaxStatus))
}

// Finish sets success whatever the verdict. The other two states are red, and a required status would block people because of errand's
// problems. The description says what was not done.
func (c *commitStatus) Finish(ctx context.Context, v Verdict) error {
	now, err := c.present(ctx)
	if err != nil {
		return err
	}
	line := untrusted.Cut(v.Line, MaxStatus)
	if now.GetTargetURL() == c.url && now.GetState() == "success" && now.GetDescription() == line {
		return nil
	}
	return c.set(ctx, "success", line)
}

// present returns errand's status as GitHub shows it, or nil.
func (c *commitStatus) present(ctx context.Context) (*github.RepoStatus, error) {
	for one, err := range statuses(ctx, c.gh, c.owner, c.name, c.sha) {
		if err != nil {
			return nil, fmt.Errorf("read status of %s: %w", ShortSHA(c.sha), err)
		}
		if one.GetContext() == IndicatorName {
			return one, nil
		}
	}
	return nil, nil
}

func (c *commitStatus) set(ctx context.Context, state, description string) error {
	_, _, err := c.gh.Repositories.CreateStatus(ctx, c.owner, c.name, c.sha, &github.RepoStatus{
		State: &state, Context: new(IndicatorName), Description: &description, TargetURL: &c.url,
	})
	if err != nil {
		return fmt.Errorf("set status of %s: %w", ShortSHA(c.sha), err)
	}
	return nil
}

// statuses lists the latest status of each context of a commit.
func statuses(ctx context.Context, gh *github.Client, owner, name, sha string) iter.Seq2[*github.RepoStatus, error] {
	opt := &github.ListOptions{PerPage: 100}
	return Pages(opt, same[*github.RepoStatus], func() ([]*github.RepoStatus, *github.Response, error) {
		page, resp, err := gh.Repositories.GetCombinedStatus(ctx, owner, name, sha, opt)
		if err != nil {
			return nil, nil, err
		}
		return page.Statuses, resp, nil
	})
}
