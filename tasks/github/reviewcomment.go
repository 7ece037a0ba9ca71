package github

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/internal/markdown"
	"github.com/errand-fleet/errand/internal/untrusted"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/review"
	"github.com/errand-fleet/errand/tasks/github/settings"
	"github.com/errand-fleet/errand/tasks/github/subject"
	"github.com/errand-fleet/errand/tasks/github/thread"
)

// comment writes an outcome to the pull request's summary comment. It keeps, edits or removes existing comments by
// their marks, so it may be called again after any failure, and concurrently with another task's.
func (r *report) comment(ctx context.Context, result outcome) error {
	e := result.ending
	if slices.Contains([]tasks.EndingKind{tasks.Refused, tasks.Cancelled, tasks.Superseded}, e.Kind) {
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
func (r *report) summaries(ctx context.Context) (map[int]posted, error) {
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
func (r *report) bodies(m mark, result outcome) []string {
	foot := r.foot(result.ending)
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

// howToRetry follows the reason of a failure.
const howToRetry = "Comment `/retry` to try again."

// addenda returns what follows an answer: a line for each published work, and how to retry what failed.
func addenda(e tasks.Ending) string {
	text := ""
	for _, one := range e.Notes() {
		text += "\n" + markdown.Neutral(untrusted.Line(one, 500))
	}
	failed := []tasks.EndingKind{tasks.Failed, tasks.TimedOut, tasks.Stalled, tasks.Lost}
	if slices.Contains(failed, e.Kind) {
		text += "\n" + howToRetry
	}
	if text != "" {
		text = "\n" + text
	}
	return text
}

// text returns the answer, or the reason for a missing answer with the partial answer.
func text(e tasks.Ending) string {
	e.Result.Text = strings.TrimSpace(e.Result.Text)
	return strings.TrimSpace(e.Sentence() + "\n\n" + e.Body())
}

// outcome is the result of a review: its ending, and the content of its comment and status indicator.
type outcome struct {
	ending  tasks.Ending
	title   string // of the comment
	text    string // of the comment, made harmless
	verdict hub.Verdict
}

// textOutcome returns the outcome of a task without findings: the agent's text, or errand's if there is no answer.
func (r *report) textOutcome(e tasks.Ending) outcome {
	o := outcome{
		ending: e, title: "Review of " + hub.ShortSHA(r.o.Head), text: markdown.Neutral(text(e)),
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
func (r *report) findingsOutcome(e tasks.Ending, p review.Plan, summary, moved string) outcome {
	headline := p.Headline()
	o := outcome{
		ending: e, title: fmt.Sprintf("Review of %s: %s", hub.ShortSHA(r.o.Head), headline),
		text: p.Text(summary, r.page()),
		verdict: hub.Verdict{
			Conclusion: "success", Title: capital(headline), Line: capital(headline) + ", see the conversation",
			At: e.At,
			Summary: strings.TrimSpace(untrusted.Cut(p.Lines(r.page()), maxSummary) +
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

// page returns the web addresses of the pull request.
func (r *report) page() review.Page {
	address, _, _ := strings.Cut(r.o.URL, "/pull/")
	return review.Page{Repo: address, Pull: r.o.URL, Head: r.o.Head, Fork: fromFork(r.task)}
}

// answer decodes the agent's findings, or returns false if it gave only text.
func (r *report) answer(e tasks.Ending) (review.Answer, bool) { return readAnswer(e, r.log) }

func readAnswer(e tasks.Ending, log *slog.Logger) (review.Answer, bool) {
	if e.Kind != tasks.Answered || len(e.Result.Structured) == 0 {
		return review.Answer{}, false
	}
	a, err := review.Read(e.Result.Structured)
	if err != nil {
		log.Warn("review without findings", "err", err) // its text is posted
		return review.Answer{}, false
	}
	a.Summary = markdown.Neutral(a.Summary)
	for i := range a.Findings {
		f := &a.Findings[i]
		f.Claim, f.Evidence = markdown.NeutralLine(f.Claim), markdown.Neutral(f.Evidence)
	}
	return a, true
}

// capital returns a line with a capital first letter.
func capital(s string) string {
	_, n := utf8.DecodeRuneInString(s)
	return strings.ToUpper(s[:n]) + s[n:]
}

// mark identifies a comment by errand, in two lines at its beginning that GitHub does not show. Only errand can have
// written them there; a mark further down is text.
type mark struct {
	part int // a text that is too long for one comment continues in part 2

	task, head string
	ending     tasks.EndingKind
	at         int64 // of the ending, in Unix microseconds: a retried task has another one
}

var markForm = regexp.MustCompile(`^<!-- errand:review(?: part=([0-9]{1,3}))? -->` +
	`(?:\r?\n<!-- errand:task=(\S+) head=(\S+) ending=(\S+) at=([0-9]{1,18}) -->)?`)

// markOf returns the mark of task t's ending.
func markOf(t tasks.Task, o subject.Origin, e tasks.Ending) mark {
	return mark{part: 1, task: t.ID, head: o.Head, ending: e.Kind, at: e.At.UnixMicro()}
}

// readMark parses the mark of a comment. Without its second line, which a user may have removed, it is the oldest mark.
func readMark(body string) (mark, bool) {
	m := markForm.FindStringSubmatch(body)
	if m == nil {
		return mark{}, false
	}
	k := mark{part: 1, task: m[2], head: m[3], ending: tasks.EndingKind(m[4])}
	if m[1] != "" {
		k.part, _ = strconv.Atoi(m[1])
	}
	k.at, _ = strconv.ParseInt(m[5], 10, 64)
	return k, true
}

func (m mark) String() string {
	part := ""
	if m.part > 1 {
		part = fmt.Sprintf(" part=%d", m.part)
	}
	return fmt.Sprintf("<!-- errand:review%s -->\n%s", part, m.line())
}

// findings returns the mark of the review with the findings on their lines, for the same ending.
func (m mark) findings() string { return "<!-- errand:findings -->\n" + m.line() }

// line returns the second line of the mark.
func (m mark) line() string {
	return fmt.Sprintf("<!-- errand:task=%s head=%s ending=%s at=%d -->\n", m.task, m.head, m.ending, m.at)
}

// key distinguishes the endings of a task: a retry may have another answer.
func (m mark) key() string { return fmt.Sprintf("%s@%d", m.task, m.at) }

// compare orders marks by the time of the endings, because the tasks of a pull request run one after another. Task IDs
// have whole seconds, and two pushes may be closer together.
func (m mark) compare(o mark) int {
	return cmp.Or(cmp.Compare(m.at, o.at), strings.Compare(m.task, o.task))
}

// limits returns the limits of a review and the invalid settings. If the settings are permanently unreadable, the
// defaults apply.
func (r *report) limits(ctx context.Context) (review.Limits, []string, error) {
	l := review.Limits{Max: 6, Floor: review.Minor}
	c, unknown, err := r.by.settings.Of(ctx, r.Thread, r.o.Base)
	if input, ok := errors.AsType[*tasks.InputError](err); ok {
		r.log.Warn("review without the repository's settings", "why", input.Sentence)
		return l, nil, nil
	}
	if err != nil {
		return l, nil, err
	}
	if c.Review.MaxFindings > 0 {
		l.Max = c.Review.MaxFindings
	}
	if c.Review.Severity != "" {
		l.Floor = review.Severity(c.Review.Severity)
	}
	return l, unknown, nil
}

// settingsErrors returns the errors in the repository's settings as the end of a comment.
func settingsErrors(unknown []string) string {
	if len(unknown) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n\n#### `" + settings.File + "`\n")
	for _, one := range unknown {
		b.WriteString("\n- " + markdown.NeutralLine(one))
	}
	return b.String()
}
