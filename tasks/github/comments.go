package github

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"

	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/internal/markdown"
	"github.com/errand-fleet/errand/tasks"
)

// idempotentComment is a text that is posted once, even if send is called several times: each part is found again by
// its mark.
type idempotentComment struct {
	task   string
	ending tasks.EndingKind
	at     int64 // time of the ending in Unix microseconds; each ending of a retried task has its own
	to     spot  // the comment to answer
	since  time.Time
	after  time.Time // a final message of an ending after this time prevents posting
	parts  []string  // Markdown
}

// mark returns the first line of a part, which GitHub does not show.
func (l idempotentComment) mark(part int) string {
	return fmt.Sprintf("<!-- errand:reply task=%s part=%d ending=%s at=%d -->", l.task, part, l.ending, l.at)
}

var (
	replyMark = regexp.MustCompile(`^<!-- errand:reply task=(\S+) part=[0-9]+ ending=(\S+) at=([0-9]{1,18}) -->`)
	oursForm  = regexp.MustCompile(`^\s*<!-- errand:`)
)

// ours reports whether a comment begins with one of errand's marks.
func ours(body string) bool { return oursForm.MatchString(body) }

// commenter posts and finds errand's comments. It is safe for concurrent use.
type commenter struct {
	api     api
	gate    *gate
	memory  memory
	watched func(repo string) bool
	log     *slog.Logger
}

// send posts the parts that are not there yet, in order. If its thread on a line is gone, it posts to the conversation.
func (c *commenter) send(ctx context.Context, gh *github.Client, o origin, l idempotentComment) error {
	err := c.sendTo(ctx, gh, o, l)
	if code := hub.StatusCode(err); l.to.Place == onLine && hub.Permanent(err) &&
		(code == http.StatusNotFound || code == http.StatusUnprocessableEntity) {
		l.to = spot{Place: inConversation}
		err = c.sendTo(ctx, gh, o, l)
	}
	return err
}

func (c *commenter) sendTo(ctx context.Context, gh *github.Client, o origin, l idempotentComment) error {
	sent, err := c.sent(ctx, gh, o, l)
	if err != nil {
		return fmt.Errorf("find an earlier reply on %s: %w", o, err)
	}
	isFinal := l.at != 0 && l.ending != noteEnding
	if e := l.final(sent, l.after); isFinal && e != nil && e.At.UnixMicro() != l.at {
		c.log.Warn("final message skipped: one is posted for an ending that is missing in Redis", "run",
			l.task, "ended", e.At)
		return nil
	}
	owner, name := o.path()
	for i, text := range l.parts {
		mark := l.mark(i + 1)
		if sent[mark] {
			continue
		}
		body := mark + "\n" + text
		if l.to.Place == onLine {
			err = replyOnLine(ctx, gh, o, l.to.Thread, body)
		} else {
			_, _, err = gh.Issues.CreateComment(ctx, owner, name, o.Number, &github.IssueComment{Body: &body})
		}
		if err != nil {
			return fmt.Errorf("reply on %s, part %d: %w", o, i+1, err)
		}
	}
	return nil
}

// sent finds the posted parts by their marks.
func (c *commenter) sent(
	ctx context.Context, gh *github.Client, o origin, l idempotentComment,
) (map[string]bool, error) {
	found := map[string]bool{}
	for r, err := range c.ownNear(ctx, gh, o, l) {
		if err != nil {
			return nil, err
		}
		found[replyMark.FindString(r.body)] = true
	}
	return found, nil
}

// ownNear lists errand's remarks at the place where the comment is posted.
func (c *commenter) ownNear(ctx context.Context, gh *github.Client, o origin, l idempotentComment) remarks {
	if l.to.Place == onLine {
		return c.api.own(ctx, c.api.lineComments(ctx, gh, o, l.since))
	}
	return c.api.own(ctx, c.api.comments(ctx, gh, o, l.since))
}

// Final finds a task's final message by its mark: the review's comment, or the reply. It does not find results of
// repositories that are only watched.
func (s *Source) Final(ctx context.Context, t tasks.Task, after time.Time) (*tasks.Ending, error) {
	o, err := originOf(t)
	if err != nil || s.cfg.watched(o.Repo) {
		return nil, err
	}
	e, err := s.reports.findFinal(ctx, t, o, after)
	if err != nil {
		return nil, s.reports.api.reportError("find an earlier final message on "+o.String(), err)
	}
	return e, nil
}

func (r *reporter) findFinal(ctx context.Context, t tasks.Task, o origin, after time.Time) (*tasks.Ending, error) {
	p, err := r.reach(ctx, t, o)
	if err != nil {
		return nil, err
	}
	if t.Kind == kindReview {
		r := &report{posting: p}
		all, err := r.comments(ctx)
		if err != nil {
			return nil, err
		}
		if m := all[1].mark; m.task == t.ID && time.UnixMicro(m.at).After(after) {
			return &tasks.Ending{Kind: m.ending, At: time.UnixMicro(m.at).UTC()}, nil
		}
		return p.finished(ctx, after)
	}
	l := idempotentComment{task: t.ID, to: spot{Place: inConversation}}
	places := []spot{l.to}
	if o.Asked != nil {
		l.since = o.Asked.At
		if o.Asked.Place == onLine {
			places = append(places, o.Asked.spot)
		}
	}
	for _, l.to = range places {
		sent, err := r.comments.sent(ctx, p.gh, o, l)
		if err != nil {
			return nil, err
		}
		if e := l.final(sent, after); e != nil {
			return e, nil
		}
	}
	return nil, nil
}

// finished returns an ending of a review whose indicator is complete. A later review has replaced its comment, or it
// had none.
func (p posting) finished(ctx context.Context, after time.Time) (*tasks.Ending, error) {
	l, err := p.openIndicator(ctx)
	if err != nil {
		return nil, err
	}
	if at := l.Finished(); at.After(after) {
		return &tasks.Ending{At: at.UTC()}, nil
	}
	return nil, nil
}

// final returns the latest ending after that time among the marks, or nil. Marks of questions, updates and notes do not
// count: they have no time, or the name of a note.
func (l idempotentComment) final(sent map[string]bool, after time.Time) *tasks.Ending {
	var last *tasks.Ending
	for mark := range sent {
		m := replyMark.FindStringSubmatch(mark)
		if m == nil || m[1] != l.task || tasks.EndingKind(m[2]) == noteEnding {
			continue
		}
		micros, err := strconv.ParseInt(m[3], 10, 64)
		if at := time.UnixMicro(micros).UTC(); err == nil && micros > 0 && at.After(after) &&
			(last == nil || at.After(last.At)) {
			last = &tasks.Ending{Kind: tasks.EndingKind(m[2]), At: at}
		}
	}
	return last
}

// noteTimeout bounds the posting of messages outside of tasks. They are best effort.
const noteTimeout = 30 * time.Second

// noteEnding replaces the name of an ending in the mark of a message outside of tasks.
const noteEnding tasks.EndingKind = "note"

// noWork is posted once on each pull request for people without write access.
const noWork = "Only people with write access can use errand here."

// addReaction adds a reaction to a comment, if GitHub allows it.
func (c *commenter) addReaction(ctx context.Context, h remarkEvent, reaction string) {
	c.inBackground(ctx, h, func(ctx context.Context) error {
		gh, err := c.api.client(ctx, h.origin())
		if err != nil {
			return err
		}
		return react(ctx, gh, h.origin(), h.spot, reaction)
	})
}

const removeReaction = `mutation($target: ID!, $sign: ReactionContent!) {
  removeReaction(input: {subjectId: $target, content: $sign}) { reaction { id } }
}`

// removeReaction removes errand's reaction from an issue or from a comment on one.
func (c *commenter) removeReaction(ctx context.Context, h remarkEvent, reaction string) {
	c.inBackground(ctx, h, func(ctx context.Context) error {
		gh, err := c.api.client(ctx, h.origin())
		if err != nil {
			return err
		}
		vars := map[string]any{"target": h.node, "sign": strings.ToUpper(reaction)}
		var answer struct{}
		if err := hub.GraphQL(ctx, gh, removeReaction, vars, &answer); !hub.Permanent(err) {
			return err
		}
		return nil // there is none
	})
}

// postNote answers a comment that became no task: by a reaction, and for people with write access also by a text, if
// any.
func (c *commenter) postNote(ctx context.Context, h remarkEvent, reaction, words string) {
	c.addReaction(ctx, h, reaction)
	if h.bot {
		return // the bot might answer
	}
	c.inBackground(ctx, h, func(ctx context.Context) error {
		p, err := c.gate.permission(ctx, h.origin(), h.author)
		if err == nil && !p.CanWrite() {
			var first bool
			if first, err = c.memory.firstStranger(ctx, h.origin()); !first {
				return err
			}
			words = noWork
		}
		if err != nil || words == "" {
			return err
		}
		gh, err := c.api.client(ctx, h.origin())
		if err != nil {
			return err
		}
		return c.send(ctx, gh, h.origin(), idempotentComment{
			task: h.task(), ending: noteEnding, to: h.spot, since: h.at, parts: []string{markdown.Neutral(words)},
		})
	})
}

// inBackground runs work for which no response waits. It does nothing in repositories that are only watched.
func (c *commenter) inBackground(ctx context.Context, h remarkEvent, do func(context.Context) error) {
	if c.watched(h.repo) {
		return
	}
	limited, cancel := context.WithTimeout(ctx, noteTimeout)
	defer cancel()
	if err := do(limited); err != nil && ctx.Err() == nil {
		c.log.Warn("answer comment", "thread", h.thread(), "comment", h.ID, "err", err)
	}
}
