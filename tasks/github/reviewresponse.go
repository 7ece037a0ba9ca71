package github

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/subject"
	"github.com/errand-fleet/errand/tasks/github/thread"
)

// handleReview submits a task that answers a review: feedback on errand's pull request is for errand without a mention.
func (i *interpreter) handleReview(ctx context.Context, h remarkEvent) (response string, err error) {
	me, err := i.api.Forge.Login(ctx)
	if err != nil {
		return "", fmt.Errorf("read review: %w", err)
	}
	switch {
	case h.Pull.GetUser().GetLogin() != me:
		return "", subject.IgnoreQuietly("The pull request is not errand's.")
	case i.watched(h.Repo):
		return "", subject.IgnoreQuietly(subject.OnlyWatched)
	case !i.gate.MayCommand(h.Author, h.Bot).Allowed:
		return "", subject.IgnoreQuietly("The author is a bot.")
	case h.said.asks() || h.said.mistaken:
		return "", subject.IgnoreQuietly("It is a request to errand and is handled as such.")
	case strings.EqualFold(h.Verdict, "approved"), strings.EqualFold(h.Verdict, "dismissed"):
		return "", subject.IgnoreQuietly("The review has no text.")
	}
	if err := i.limitRate(ctx, h); err != nil {
		return "", err
	}
	t, err := i.requestedTask(ctx, h, work{kind: subject.KindReviewResponse, profile: agent.Write})
	if err != nil {
		return "", err
	}
	t.Prompt = cmp.Or(h.said.rest, "See the comments on the lines.")
	t.Class = tasks.Background // unrequested work can wait
	return subject.Submitted(t.Submit(ctx, i.desk))
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
	if err := k.b.memory.OnceUnasked(ctx, k.task, k.o, "review "+k.o.Asked.Identity()); err != nil {
		return "", err
	}
	return responseOrder + "\n\n" + remarks.prompt(k), nil
}
