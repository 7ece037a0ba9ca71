package github

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"

	"github.com/errand-fleet/errand/agent"
	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/internal/markdown"
	"github.com/errand-fleet/errand/internal/untrusted"
	"github.com/errand-fleet/errand/tasks"
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

// issueStatus is what errand remembers of the comment.
type issueStatus struct {
	ID   int64  `json:"id,omitempty"`   // 0 if unknown
	Task string `json:"task,omitempty"` // the task whose state it may show; "" after that task has ended
	Turn int64  `json:"turn,omitempty"` // see begin; of the newest writer for that task
	Gone bool   `json:"gone,omitempty"` // people have deleted the comment, so the task shows no more states
	Pull string `json:"pull,omitempty"` // URL of the latest pull request for the issue
}

// Update shows that the agent works, or that it waits for an answer.
func (r *reply) Update(e agent.Event) {
	switch {
	case r.states == nil:
	case e.Kind == agent.Started, e.Kind == tasks.Replied:
		r.states.put(stateWorking)
	case e.Kind == tasks.Asked:
		r.states.put(stateAsking)
	}
}

// begin lets a task show a state, and reports whether it may. A task that waits only has a state if it has begun.
// Writers may be late, and work for different workers: that of a run is dropped when the task waits again, and that of
// a wait when it runs.
func (s *issueStatus) begin(t tasks.Task, state string) bool {
	turn, ours := 2*t.Fence, s.Task == t.ID
	if strings.HasPrefix(state, stateWaiting) {
		if turn++; !ours {
			return false
		}
	}
	if ours && (s.Gone || turn < s.Turn) {
		return false
	}
	s.Task, s.Turn, s.Gone = t.ID, turn, false
	return true
}

// showState writes the state of the task, which has not ended. It changes the memo first, so that the end of the task
// is shown even if this worker dies.
func (r *reply) showState(ctx context.Context, state string) error {
	var s issueStatus
	var may bool
	err := r.by.memory.changeState(ctx, r.origin, func(p *prState) error {
		may = p.Status.begin(r.task, state)
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
	return r.by.memory.changeState(ctx, r.origin, func(p *prState) error {
		p.Status.ID, p.Status.Gone = id, id == 0
		return nil
	})
}

// endState writes how the task has ended, if the comment shows the task. refused means that its answer is not there.
func (r *reply) endState(ctx context.Context, e tasks.Ending, refused bool) error {
	if r.origin.Issue == 0 {
		return nil
	}
	p, err := r.by.memory.state(ctx, r.origin)
	if s := p.Status; err != nil || s.Task != r.task.ID {
		return err
	}
	state := stateAnswered
	switch {
	case e.Kind != tasks.Answered:
		state = stateEnded + markdown.NeutralLine(untrusted.Line(e.Sentence(), 500))
	case refused:
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
		return r.by.api.reportError("end state", err)
	}
	return r.by.memory.changeState(ctx, r.origin, func(now *prState) error {
		if now.Status.Task != r.task.ID {
			return nil
		}
		now.Status.ID, now.Status.Pull = id, p.Status.Pull
		if !refused { // otherwise the next attempt shows how it went
			now.Status = issueStatus{ID: id, Pull: p.Status.Pull}
		}
		return nil
	})
}

// writeState edits the comment and returns its ID, or 0 if people have deleted it. If there is none, it may create it.
func (r *reply) writeState(ctx context.Context, s issueStatus, state string, create bool) (id int64, err error) {
	who := markdown.Unping(r.task.Actor)
	if r.origin.Asked.URL != "" {
		who = fmt.Sprintf("[%s](%s)", who, r.origin.Asked.URL)
	}
	body := statusMark + strings.Replace(state, "%s", who, 1)
	links := []string{r.runLink()}
	if s.Pull != "" {
		links = append(links, fmt.Sprintf("[draft pull request](%s)", s.Pull))
	}
	comment := &github.IssueComment{Body: new(body + "\n\n<sub>" + strings.Join(links, " · ") + "</sub>\n")}
	if id = s.ID; id == 0 {
		id, err = r.findState(ctx)
	}
	owner, name := r.origin.path()
	switch {
	case err != nil:
	case id != 0:
		_, _, err = r.gh.Issues.EditComment(ctx, owner, name, id, comment)
		if hub.StatusCode(err) == http.StatusNotFound {
			return 0, nil
		}
	case create:
		comment, _, err = r.gh.Issues.CreateComment(ctx, owner, name, r.origin.Number, comment)
		id = comment.GetID()
	}
	if err != nil {
		return id, fmt.Errorf("write state on %s: %w", r.origin, err)
	}
	return id, nil
}

// findState finds the comment by its mark, or returns 0.
func (r *reply) findState(ctx context.Context) (id int64, err error) {
	for c, err := range r.by.api.own(ctx, r.by.api.comments(ctx, r.gh, r.origin, time.Time{})) {
		if err != nil || strings.HasPrefix(c.body, statusMark) {
			return c.ID, err
		}
	}
	return 0, nil
}

// showWait shows that a task that has begun has to wait before it can go on.
func (r *reply) showWait(ctx context.Context, why string) error {
	return r.showState(ctx, stateWaiting+markdown.NeutralLine(untrusted.Line(why, 500)))
}
