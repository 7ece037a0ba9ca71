package worker

import (
	"cmp"
	"context"
	"strings"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/environment"
	"github.com/errand-fleet/errand/forge"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/workspace"
)

// lessonBranch is followed by the key of the lesson that the branch proposes.
const lessonBranch = "errand/review-"

// proposeLesson proposes what the team of a repository has taught reviews by dismissing findings, as a draft pull request
// with one more line for the review instructions. Runs for other branches, of untrusted code and in repositories that
// errand may not write to propose nothing. A failure delays only the proposal.
func (b *publisher) proposeLesson(r *run, j job, p place) {
	t := j.task
	learner, ok := j.source.(tasks.Learner)
	if !ok || b.Publisher == nil || t.Repo == "" || t.Profile == agent.Untrusted || r.ctx.Err() != nil {
		return
	}
	repo, err := b.Policy.Allowed(t.Repo)
	if err != nil || repo.Narrow(agent.Write) != agent.Write || p.Clone.Base != cmp.Or(repo.Base, p.Clone.DefaultBranch) {
		return
	}
	ctx, patience, cancel := publishing(r)
	defer cancel()
	patience.Reset(learnFor)
	lesson, err := learner.NextLesson(ctx, t.Repo)
	var pr forge.PullRequestRef
	if err == nil && lesson != nil {
		if pr, err = b.proposeLine(ctx, r, t, p.Clone.Base, *lesson); err == nil {
			err = learner.Proposed(ctx, t.Repo, lesson.Key, pr.URL)
		}
	}
	switch {
	case err != nil:
		b.Log.Warn("propose review instructions", "run", t.ID, "repo", t.Repo, "err", err)
	case pr.URL != "":
		r.notice("Proposed a line for the review instructions: " + pr.URL)
	}
}

// proposeLine opens the pull request of a lesson. If the base branch has the line, there is nothing to propose.
func (b *publisher) proposeLine(ctx context.Context, r *run, t tasks.Task, base string, lesson tasks.Lesson) (forge.PullRequestRef, error) {
	return b.proposeSettings(ctx, r, t, base, settingsChange{branch: lessonBranch + lesson.Key, edit: func(c workspace.Clone) (e edited, err error) {
		before, err := b.Workspace.BaseFile(ctx, c, environment.File, environment.MaxFile)
		if err != nil {
			return e, err
		}
		text, err := environment.WithUnwanted(before, lesson.Line)
		if err != nil || text == before {
			return e, err
		}
		return edited{
			text: text, title: "Leave findings out of reviews that were dismissed",
			summary: "People with write access have dismissed these findings. After the merge, reviews no longer report what is like them. If they " +
				"should, close this pull request; it is not opened again.\n\n```\n" + lesson.Line + "\n```\n\n- " + strings.Join(lesson.Links, "\n- "),
		}, nil
	}})
}
