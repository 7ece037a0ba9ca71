package review

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/errand-fleet/errand/agent"
	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/internal/display"
	"github.com/errand-fleet/errand/internal/markdown"
	"github.com/errand-fleet/errand/internal/untrusted"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/findings"
	"github.com/errand-fleet/errand/tasks/github/subject"
	"github.com/errand-fleet/errand/tasks/github/thread"
)

// comment writes an outcome to the pull request's summary comment. It keeps, edits or removes existing comments by
// their marks, so it may be called again after any failure, and concurrently with another task's.
func (r *Report) comment(ctx context.Context, result outcome) error {
	e := result.ending
	if slices.Contains([]tasks.EndingKind{tasks.Refused, tasks.Cancelled, tasks.Taken, tasks.Superseded}, e.Kind) {
		return nil // no review is missing
	}
	old, err := r.summaries(ctx)
	if err != nil {
		return fmt.Errorf("list comments of %s: %w", r.o, err)
	}
	ours := markOf(r.task, r.o, e)
	if first, ok := old[1]; ok {
		if first.mark.compare(ours) > 0 || e.Kind != tasks.Answered && first.mark.ending == tasks.Answered {
			return nil
		}
	}
	parts := r.bodies(ours, result)
	for i, body := range parts {
		c, found := old[i+1]
		switch {
		case !found:
			_, err = r.Post(ctx, thread.Spot{}, body)
		case c.mark.compare(ours) != 0:
			err = r.Edit(ctx, thread.Spot{ID: c.id}, body)
			if hub.StatusCode(err) == http.StatusNotFound {
				err = errors.New("it was just deleted") // not permanent: the next attempt posts a new one
			}
		}
		if err != nil {
			return fmt.Errorf("write part %d of the review of %s: %w", i+1, r.o, err)
		}
	}
	for part, c := range old {
		if part <= len(parts) {
			continue
		}
		// The rest of an older, longer text.
		if _, err := r.GH.Issues.DeleteComment(ctx, r.Owner, r.Name, c.id); err != nil &&
			hub.StatusCode(err) != http.StatusNotFound {
			return fmt.Errorf("remove part %d of the review of %s: %w", part, r.o, err)
		}
	}
	return nil
}

// posted is a comment by errand.
type posted struct {
	id   int64
	mark mark
}

// summaries finds the comments of a review's summary, by part.
func (r *Report) summaries(ctx context.Context) (map[int]posted, error) {
	found := map[int]posted{}
	for c, err := range r.Own(ctx, r.Comments(ctx, time.Time{})) {
		if err != nil {
			return nil, err
		}
		m, ok := readMark(c.Body)
		if _, twice := found[m.part]; ok && !twice {
			found[m.part] = posted{c.ID, m}
		}
	}
	return found, nil
}

// bodies returns the comments for an outcome.
func (r *Report) bodies(m mark, result outcome) []string {
	foot := r.Foot(r.task.ID, result.ending)
	const head = 512 // room for the mark and the title
	room := hub.MaxComment - head - len(foot)
	texts := []string{result.text}
	if len(result.text) > room { // text with errand's markup cannot be split
		texts = markdown.Parts(strings.NewReplacer("<sub>", "", "</sub>", "").Replace(result.text), room,
			markdown.Bytes)
	}
	bodies := make([]string, len(texts))
	for i, t := range texts {
		m.part = i + 1
		title := result.title
		if len(texts) > 1 {
			title += fmt.Sprintf(" (%d of %d)", m.part, len(texts))
		}
		bodies[i] = fmt.Sprintf("%s**%s**\n\n%s", m, title, t)
	}
	bodies[len(bodies)-1] += foot
	return bodies
}

// outcome is the result of a review: its ending, and the content of its comment and status indicator.
type outcome struct {
	ending  tasks.Ending
	title   string // of the comment
	text    string // of the comment, made harmless
	verdict hub.Verdict
}

// textOutcome returns the outcome of a task without findings: the agent's text, or errand's if there is no answer.
func (r *Report) textOutcome(e tasks.Ending) outcome {
	o := outcome{
		ending: e, title: "Review of " + hub.ShortSHA(r.o.Head), text: markdown.Neutral(thread.Text(e)),
		verdict: verdictOf(e),
	}
	o.verdict.State = statusOf(e, r.o.Head)
	if e.Kind != tasks.Answered {
		o.title = "No review of " + hub.ShortSHA(r.o.Head)
	}
	return o
}

// findingsOutcome returns the outcome of a review with placed findings. moved is the new head of the pull request, or
// "" if it is still the reviewed one.
func (r *Report) findingsOutcome(e tasks.Ending, p findings.Plan, summary, moved string) outcome {
	headline := p.Headline()
	o := outcome{
		ending: e, title: fmt.Sprintf("Review of %s: %s", hub.ShortSHA(r.o.Head), headline),
		text: p.Text(summary, pageOf(r.task, r.o)),
		verdict: hub.Verdict{
			Conclusion: "success", Title: display.Capital(headline), At: e.At,
			Line: display.Capital(headline) + ", see the conversation",
			Summary: strings.TrimSpace(untrusted.Cut(p.Lines(pageOf(r.task, r.o)), maxSummary) +
				"\n\nThe review is in the conversation of the pull request.\n\n" + markdown.Unping(e.Footer())),
		},
	}
	if len(p.Inline)+len(p.Summary)+len(p.StillOpen) > 0 {
		o.verdict.Conclusion = "neutral"
	}
	if moved != "" {
		word := "Superseded by " + hub.ShortSHA(moved) + "."
		o.text = "The pull request has moved on to " + hub.ShortSHA(moved) +
			" since, so the findings are not shown on their lines.\n\n" + o.text
		o.verdict = hub.Verdict{Conclusion: "neutral", Title: "Superseded", Summary: word, Line: word, At: e.At}
	}
	return o
}

// maxSummary is the most characters of findings in a check run's summary, of the 65,535 that GitHub allows.
const maxSummary = 60_000

// pageOf returns the web addresses of the pull request of a task.
func pageOf(t tasks.Task, o subject.Origin) findings.Page {
	address, _, _ := strings.Cut(o.URL, "/pull/")
	return findings.Page{Repo: address, Pull: o.URL, Head: o.Head, Fork: t.Profile == agent.Untrusted}
}

// found decodes the agent's findings, or returns false if it gave only text.
func (r *Report) found(e tasks.Ending) (findings.Answer, bool) {
	if e.Kind != tasks.Answered || len(e.Result.Structured) == 0 {
		return findings.Answer{}, false
	}
	a, err := findings.Read(e.Result.Structured)
	if err != nil {
		r.log.Warn("review without findings", "err", err) // its text is posted
		return findings.Answer{}, false
	}
	a.Summary = markdown.Neutral(a.Summary)
	for i := range a.Findings {
		f := &a.Findings[i]
		f.Claim, f.Evidence = markdown.NeutralLine(f.Claim), markdown.Neutral(f.Evidence)
		f.Reason = markdown.NeutralLine(f.Reason)
	}
	return a, true
}

// limits returns the limits of a review and, as the end of a comment, the invalid settings. If the settings are
// permanently unreadable, the defaults apply.
func (r *Report) limits(ctx context.Context) (_ findings.Limits, wrong string, _ error) {
	l := findings.Limits{Max: 6, Floor: findings.Minor}
	c, unknown, err := r.by.settings.Of(ctx, r.Thread)
	if input, ok := errors.AsType[*tasks.InputError](err); ok {
		r.log.Warn("review without the repository's settings", "why", input.Sentence)
		return l, "", nil
	}
	if err != nil {
		return l, "", err
	}
	if c.Review.MaxFindings > 0 {
		l.Max = c.Review.MaxFindings
	}
	if c.Review.Severity != "" {
		l.Floor = findings.Severity(c.Review.Severity)
	}
	return l, settingsErrors(c.File, unknown), nil
}

// settingsErrors returns the errors in a file of the repository's settings as the end of a comment.
func settingsErrors(file string, unknown []string) string {
	if len(unknown) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n\n#### `" + file + "`\n")
	for _, one := range unknown {
		b.WriteString("\n- " + markdown.NeutralLine(one))
	}
	return b.String()
}
