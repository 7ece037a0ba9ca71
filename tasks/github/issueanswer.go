package github

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/errand-fleet/errand/agent"
	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/internal/markdown"
	"github.com/errand-fleet/errand/internal/untrusted"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/subject"
	"github.com/errand-fleet/errand/tasks/github/thread"
)

// One comment on an issue shows what errand does there, from the first run on. The comment is edited in place, which
// sends no mail, and not often: the log has the details.

// statusPause is the time between two edits while a task runs.
const statusPause = 30 * time.Second

// statusMark is the first line of the comment, by which it is found again.
const statusMark = "<!-- errand:status -->\n"

// The texts for the states. %s is the person who made the request.
const (
	stateWorking  = "Working on %s's request."
	stateAsking   = "I have asked a question about %s's request below and am waiting for an answer."
	stateWaiting  = "%s's request is waiting to continue. "
	stateAnswered = "Done: the answer to %s's request is below."
	stateRefused  = "Done, but GitHub rejected the answer to %s's request. See the run's page."
	stateEnded    = "%s's request has ended. "
)

// issueAnswer is the answer to a request on an issue. Another comment shows the state.
type issueAnswer struct {
	*answer
	progress *thread.Latest // what the comment shows
}

// Start begins to show the state. Nothing is posted before the agent starts.
func (r *issueAnswer) Start(ctx context.Context) error {
	r.progress = thread.ShowLatest(ctx, r.by.pause, r.log, r.showState)
	return nil
}

// Update shows that the agent works or waits for an answer.
func (r *issueAnswer) Update(e agent.Event) {
	if text := stateOf(e); text != "" {
		r.progress.Put(text)
	}
}

// stateOf returns what an event says about the state of a task on an issue, or "".
func stateOf(e agent.Event) string {
	switch e.Kind {
	case agent.Started, tasks.Replied:
		return stateWorking
	case tasks.Asked:
		return stateAsking
	}
	return ""
}

// Wait shows why the task waits, if it has begun.
func (r *issueAnswer) Wait(ctx context.Context, why string) error {
	return r.showState(ctx, stateWaiting+markdown.NeutralLine(untrusted.Line(why, 500)))
}

// Close posts the answer, and then ends the comment with the state, also if GitHub refuses the answer. After any error
// the next attempt finds what was posted.
func (r *issueAnswer) Close(ctx context.Context, e tasks.Ending) error {
	if err := r.progress.Close(ctx); err != nil {
		return err
	}
	failed := r.answerRequest(ctx, e)
	if failed != nil && !hub.Permanent(failed) {
		return failed
	}
	err := statusLeft(r.endState(ctx, e, failed != nil))
	return cmp.Or(failed, err)
}

// showState writes the state of the task, which has not ended. It changes the memo first, so that the end of the task
// is shown even if this worker dies.
func (r *issueAnswer) showState(ctx context.Context, state string) error {
	var s subject.IssueStatus
	var may bool
	err := r.by.memory.ChangeState(ctx, r.o.Ref, func(p *subject.State) error {
		may = p.Status.Begin(r.task, strings.HasPrefix(state, stateWaiting))
		s = p.Status
		return nil
	})
	if err != nil || !may {
		return err
	}
	id, err := r.writeState(ctx, s, state, true)
	if err != nil || id == s.ID && id != 0 {
		return err
	}
	return r.by.memory.ChangeState(ctx, r.o.Ref, func(p *subject.State) error {
		p.Status.ID, p.Status.Gone = id, id == 0
		return nil
	})
}

// endState writes how the task has ended, if the comment shows the task. refused means that its answer is not there.
func (r *issueAnswer) endState(ctx context.Context, e tasks.Ending, refused bool) error {
	p, err := r.by.memory.State(ctx, r.o.Ref)
	if s := p.Status; err != nil || s.Task != r.task.ID {
		return err
	}
	state := stateAnswered
	if e.Kind != tasks.Answered {
		state = stateEnded + markdown.NeutralLine(untrusted.Line(e.Sentence(), 500))
	} else if refused {
		state = stateRefused
	}
	if e.Published != nil && e.Published.PullRequest.URL != "" {
		p.Status.Pull = e.Published.PullRequest.URL
	}
	var id int64
	if !p.Status.Gone {
		id, err = r.writeState(ctx, p.Status, state, false)
	}
	if hub.Permanent(err) {
		r.log.Warn("end state", "err", err)
	} else if err != nil {
		return r.ReportError("end state", err)
	}
	return r.by.memory.ChangeState(ctx, r.o.Ref, func(now *subject.State) error {
		if now.Status.Task != r.task.ID {
			return nil
		}
		now.Status.ID, now.Status.Pull = id, p.Status.Pull
		if !refused { // otherwise the next attempt shows how it went
			now.Status = subject.IssueStatus{ID: id, Pull: p.Status.Pull}
		}
		return nil
	})
}

// writeState edits the comment and returns its ID, or 0 if people have deleted it. If there is none, it may create it.
func (r *issueAnswer) writeState(
	ctx context.Context, s subject.IssueStatus, state string, create bool,
) (id int64, err error) {
	who := markdown.Unping(r.task.Actor)
	if r.o.Asked.URL != "" {
		who = fmt.Sprintf("[%s](%s)", who, r.o.Asked.URL)
	}
	body := statusMark + strings.Replace(state, "%s", who, 1)
	links := []string{r.RunLink(r.task.ID)}
	if s.Pull != "" {
		links = append(links, fmt.Sprintf("[draft pull request](%s)", s.Pull))
	}
	body += "\n\n<sub>" + strings.Join(links, " · ") + "</sub>\n"
	if id = s.ID; id == 0 {
		var old thread.Remark
		old, _, err = r.Find(ctx, r.Comments(ctx, time.Time{}), statusMark)
		id = old.ID
	}
	if err == nil && id != 0 {
		err = r.Edit(ctx, thread.Spot{ID: id}, body)
		if hub.StatusCode(err) == http.StatusNotFound {
			return 0, nil
		}
	} else if err == nil && create {
		id, err = r.Post(ctx, thread.Spot{}, body)
	}
	if err != nil {
		return id, fmt.Errorf("write state on %s: %w", r.o, err)
	}
	return id, nil
}
