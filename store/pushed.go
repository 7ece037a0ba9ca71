package store

import (
	"context"
	"fmt"
)

// maxPushed is how many commits of a branch are remembered. The last two would do: of the last push nobody may have seen the end.
const maxPushed = 10

// Pushing notes that the running task is about to push a commit to a branch of a repository. [ErrStale] when the task is not ours any
// more, and so not ours to push. The branch may get to that commit or not: it is noted before, because afterwards it could be too late.
func (c *Claim) Pushing(ctx context.Context, repo, branch, commit string) error {
	_, err := c.run(ctx, "pushing", c.ID(), c.fence, repo+" "+branch, commit, maxPushed, c.store.cfg.SessionTTL.Milliseconds())
	if err != nil {
		return fmt.Errorf("note push of %s: %w", c.ID(), err)
	}
	return nil
}

// Pushed lists the latest commits that a branch may be at by our doing. There are none of a branch that nobody pushed to for SessionTTL.
func (s *Threads) Pushed(ctx context.Context, repo, branch string) ([]string, error) {
	commits, err := s.redis.LRange(ctx, s.key.pushed(repo, branch), 0, -1).Result()
	if err != nil {
		return nil, fmt.Errorf("read pushes to %s of %s: %w", branch, repo, err)
	}
	return commits, nil
}
