package github

import (
	"context"
	"fmt"
	"time"

	"github.com/google/go-github/v60/github"

	"github.com/errand-fleet/errand/tasks"
)

// commitStatus is the light of a token. GitHub keeps every status ever set and shows the last of a context, at most 1,000 of them per
// commit; hence the long pause, and the look at what is there before the last word. The target address tells tasks apart.
type commitStatus struct {
	gh          *github.Client
	owner, name string
	sha, url    string
}

// openStatus sets the status to pending, unless it is the task's already.
func (s *Source) openStatus(ctx context.Context, gh *github.Client, o origin, t tasks.Task) (light, error) {
	c := &commitStatus{gh: gh, sha: o.Head, url: s.page(o, t.ID)}
	c.owner, c.name = o.path()
	now, err := c.present(ctx)
	if err != nil {
		return nil, err
	}
	if now.GetTargetURL() == c.url {
		return c, nil
	}
	return c, c.set(ctx, "pending", "Reviewing")
}

func (c *commitStatus) pause() time.Duration { return time.Minute }

func (c *commitStatus) show(ctx context.Context, action string) error {
	return c.set(ctx, "pending", cut(action, maxStatus))
}

// end sets success whatever the verdict: the other two words would be red, and a required status would hold up people for a
// problem of ours. The description says what was not done.
func (c *commitStatus) end(ctx context.Context, v verdict) error {
	now, err := c.present(ctx)
	if err != nil {
		return err
	}
	said := cut(v.line, maxStatus)
	if now.GetTargetURL() == c.url && now.GetState() == "success" && now.GetDescription() == said {
		return nil
	}
	return c.set(ctx, "success", said)
}

// present is the status as GitHub shows it, nil when there is none of ours.
func (c *commitStatus) present(ctx context.Context) (*github.RepoStatus, error) {
	opt := &github.ListOptions{PerPage: 100}
	for {
		all, resp, err := c.gh.Repositories.GetCombinedStatus(ctx, c.owner, c.name, c.sha, opt)
		if err != nil {
			return nil, fmt.Errorf("read status of %s: %w", short(c.sha), err)
		}
		for _, one := range all.Statuses {
			if one.GetContext() == lightName {
				return one, nil
			}
		}
		if resp.NextPage == 0 {
			return nil, nil
		}
		opt.Page = resp.NextPage
	}
}

// maxStatus is how long a description may be, in characters.
const maxStatus = 140

func (c *commitStatus) set(ctx context.Context, state, description string) error {
	_, _, err := c.gh.Repositories.CreateStatus(ctx, c.owner, c.name, c.sha, &github.RepoStatus{
		State: &state, Context: new(lightName), Description: &description, TargetURL: &c.url,
	})
	if err != nil {
		return fmt.Errorf("set status of %s: %w", short(c.sha), err)
	}
	return nil
}
