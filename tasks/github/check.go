package github

import (
	"context"
	"fmt"
	"time"

	"github.com/google/go-github/v60/github"

	"github.com/errand-fleet/errand/tasks"
)

// check is the light of an App.
type check struct {
	gh          *github.Client
	owner, name string
	id          int64
	url         *string
}

// openCheck finds the task's check run by its external ID, in whatever state it is, or creates one that runs.
func (s *Source) openCheck(ctx context.Context, gh *github.Client, o origin, t tasks.Task) (light, error) {
	c := &check{gh: gh, url: new(s.page(o, t.ID))}
	c.owner, c.name = o.path()
	opt := &github.ListCheckRunsOptions{
		CheckName: new(lightName), Filter: new("all"), AppID: &s.cfg.AppID, ListOptions: github.ListOptions{PerPage: 100},
	}
	for {
		page, resp, err := gh.Checks.ListCheckRunsForRef(ctx, c.owner, c.name, o.Head, opt)
		if err != nil {
			return nil, fmt.Errorf("list check runs of %s: %w", short(o.Head), err)
		}
		for _, run := range page.CheckRuns {
			if run.GetExternalID() == t.ID && run.GetApp().GetID() == s.cfg.AppID {
				c.id = run.GetID()
				return c, nil
			}
		}
		if resp.NextPage == 0 {
			break
		}
		opt.Page = resp.NextPage
	}
	run, _, err := gh.Checks.CreateCheckRun(ctx, c.owner, c.name, github.CreateCheckRunOptions{
		Name: lightName, HeadSHA: o.Head, ExternalID: &t.ID, DetailsURL: c.url, Status: new("in_progress"),
		Output: output("Reviewing", "The agent is about to start."),
	})
	if err != nil {
		return nil, fmt.Errorf("create check run of %s: %w", short(o.Head), err)
	}
	c.id = run.GetID()
	return c, nil
}

func (c *check) pause() time.Duration { return 15 * time.Second }

// show also makes a check run that had ended run again, for a task that is tried again.
func (c *check) show(ctx context.Context, action string) error {
	return c.update(ctx, github.UpdateCheckRunOptions{Status: new("in_progress"), Output: output("Reviewing", action)})
}

func (c *check) end(ctx context.Context, v verdict) error {
	return c.update(ctx, github.UpdateCheckRunOptions{
		Status: new("completed"), Conclusion: &v.conclusion, CompletedAt: &github.Timestamp{Time: v.at},
		Output: output(v.title, v.summary),
	})
}

// conclusion is that of an ending without findings to go by. It is nothing that GitHub counts as failed, as it does timed_out: whether the change
// is any good is for people to say, and our own problems are not theirs. Nor is it success, which says that there is nothing to read.
func conclusion(k tasks.EndingKind) string {
	if k == tasks.Cancelled {
		return "cancelled" // somebody wanted it so
	}
	return "neutral"
}

func (c *check) update(ctx context.Context, u github.UpdateCheckRunOptions) error {
	u.Name, u.DetailsURL = lightName, c.url
	if _, _, err := c.gh.Checks.UpdateCheckRun(ctx, c.owner, c.name, c.id, u); err != nil {
		return fmt.Errorf("update check run %d: %w", c.id, err)
	}
	return nil
}

func output(title, summary string) *github.CheckRunOutput {
	return &github.CheckRunOutput{Title: &title, Summary: &summary}
}
