package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"

	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/internal/markdown"
	"github.com/errand-fleet/errand/internal/untrusted"
	"github.com/errand-fleet/errand/tasks"
)

// comment puts an outcome into the pull request's review comment. What it finds there it leaves, edits or removes by the marks, so
// that it may be called again after any failure, and beside another task's.
func (r *report) comment(ctx context.Context, said outcome) error {
	e := said.ending
	if slices.Contains([]tasks.EndingKind{tasks.Refused, tasks.Cancelled, tasks.Superseded}, e.Kind) {
		return nil // nobody is missing a review
	}
	old, err := r.comments(ctx)
	if err != nil {
		return fmt.Errorf("list comments of %s: %w", r.origin, err)
	}
	ours := markOf(r.task, r.origin, e)
	if first, ok := old[1]; ok {
		if first.mark.compare(ours) > 0 || e.Kind != tasks.Answered && first.mark.ending == tasks.Answered {
			return nil
		}
	}
	owner, name := r.origin.path()
	parts := r.bodies(ours, said)
	for i, body := range parts {
		c, found := old[i+1]
		text := &github.IssueComment{Body: &body}
		switch {
		case !found:
			_, _, err = r.gh.Issues.CreateComment(ctx, owner, name, r.origin.Number, text)
		case c.mark.compare(ours) != 0:
			_, _, err = r.gh.Issues.EditComment(ctx, owner, name, c.id, text)
			if hub.StatusCode(err) == http.StatusNotFound {
				err = errors.New("somebody has just deleted it") // not for good: the next attempt writes a new one
			}
		}
		if err != nil {
			return fmt.Errorf("write part %d of the review of %s: %w", i+1, r.origin, err)
		}
	}
	for part, c := range old {
		if part <= len(parts) {
			continue
		}
		// The rest of a longer text than ours.
		if _, err := r.gh.Issues.DeleteComment(ctx, owner, name, c.id); err != nil && hub.StatusCode(err) != http.StatusNotFound {
			return fmt.Errorf("remove part %d of the review of %s: %w", part, r.origin, err)
		}
	}
	return nil
}

// posted is a comment of ours.
type posted struct {
	id   int64
	mark mark
}

// comments finds our comments with a mark, by part. Others may have copied a mark, so the author has to be us.
func (r *report) comments(ctx context.Context) (map[int]posted, error) {
	me, err := r.source.forge.Login(ctx)
	if err != nil {
		return nil, err
	}
	found := map[int]posted{}
	for c, err := range r.source.conversation(ctx, r.gh, r.origin, time.Time{}) {
		if err != nil {
			return nil, err
		}
		m, ok := readMark(c.body)
		if _, twice := found[m.part]; ok && !twice && c.author == me {
			found[m.part] = posted{c.ID, m}
		}
	}
	return found, nil
}

// bodies are the comments that tell an outcome.
func (r *report) bodies(m mark, said outcome) []string {
	foot := "\n\n---\n<sub>" + r.footer(said.ending) + "</sub>\n"
	if note := said.ending.Note(); note != "" {
		foot = "\n\n" + markdown.Neutral(untrusted.Line(note, 500)) + foot
	}
	const head = 512 // of the mark and the title, with room
	room := hub.MaxComment - head - len(foot)
	texts := []string{said.text}
	if len(said.text) > room { // with the markup that is our own it cannot be cut
		texts = markdown.Parts(strings.NewReplacer("<sub>", "", "</sub>", "").Replace(said.text), room, markdown.Bytes)
	}
	bodies := make([]string, len(texts))
	for i, t := range texts {
		m.part = i + 1
		title := said.title
		if len(texts) > 1 {
			title += fmt.Sprintf(" (%d of %d)", m.part, len(texts))
		}
		bodies[i] = fmt.Sprintf("%s**%s**\n\n%s", m, title, t)
	}
	bodies[len(bodies)-1] += foot
	return bodies
}

// text is what is said: the answer, or why there is none and what there was of it.
func text(e tasks.Ending) string {
	e.Result.Text = strings.TrimSpace(e.Result.Text)
	return strings.TrimSpace(e.Sentence() + "\n\n" + e.Body())
}

// footer is the line of facts and the run's address.
func (r *report) footer(e tasks.Ending) string {
	run := "run " + r.task.ID
	if r.source.cfg.ConsoleURL != "" {
		run = fmt.Sprintf("[%s](%s)", run, r.source.page(r.origin, r.task.ID))
	}
	if facts := e.Footer(); facts != "" {
		return markdown.Unping(facts) + " · " + run
	}
	return run
}
