package github

import (
	"fmt"
	"strings"
	"unicode/utf8"

	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/internal/markdown"
	"github.com/errand-fleet/errand/internal/untrusted"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/review"
)

// outcome is what has come of a review: how it ended, and what its comment and its light say.
type outcome struct {
	ending  tasks.Ending
	title   string // of the comment
	text    string // of the comment, harmless
	verdict hub.Verdict
}

// spoken is the outcome of a task that has words only: the agent's, where it gave no findings, or ours, where there was no answer.
func (r *report) spoken(e tasks.Ending) outcome {
	o := outcome{ending: e, title: "Review of " + hub.ShortSHA(r.origin.Head), text: markdown.Neutral(text(e)), verdict: verdictOf(e)}
	if e.Kind != tasks.Answered {
		o.title = "No review of " + hub.ShortSHA(r.origin.Head)
	}
	return o
}

// found is the outcome of a review with findings, as they were placed. moved is the head that has taken the place of the one that was
// reviewed; empty: it is still there.
func (r *report) found(e tasks.Ending, p review.Plan, summary, moved string) outcome {
	headline := p.Headline()
	o := outcome{
		ending: e, title: fmt.Sprintf("Review of %s: %s", hub.ShortSHA(r.origin.Head), headline), text: p.Text(summary, r.where()),
		verdict: hub.Verdict{
			Conclusion: "success", Title: capital(headline), Line: capital(headline) + ", see the conversation", At: e.At,
			Summary: strings.TrimSpace(untrusted.Cut(p.Lines(r.where()), maxSummary) + "\n\nThe review is in the conversation of the pull request.\n\n" + markdown.Unping(e.Footer())),
		},
	}
	if len(p.Inline)+len(p.Summary)+len(p.StillOpen) > 0 {
		o.verdict.Conclusion = "neutral"
	}
	if moved != "" {
		word := "Superseded by " + hub.ShortSHA(moved) + "."
		o.text = "The pull request has moved on to " + hub.ShortSHA(moved) + " meanwhile, so nothing of this stands at its lines.\n\n" + o.text
		o.verdict = hub.Verdict{Conclusion: "neutral", Title: "Superseded", Summary: word, Line: word, At: e.At}
	}
	return o
}

// maxSummary is how much of a check run's summary the findings may take, in characters, of the 65,535 that GitHub allows.
const maxSummary = 60_000

// where is where the pull request's pages are.
func (r *report) where() review.Page {
	address, _, _ := strings.Cut(r.origin.URL, "/pull/")
	return review.Page{Repo: address, Pull: r.origin.URL, Head: r.origin.Head}
}

// answer is what the agent found; false when it gave words only.
func (r *report) answer(e tasks.Ending) (review.Answer, bool) {
	if e.Kind != tasks.Answered || len(e.Result.Structured) == 0 {
		return review.Answer{}, false
	}
	a, err := review.Read(e.Result.Structured)
	if err != nil {
		r.log.Warn("review without findings", "err", err) // its words are posted
		return review.Answer{}, false
	}
	a.Summary = markdown.Neutral(a.Summary)
	for i := range a.Findings {
		f := &a.Findings[i]
		f.Claim, f.Evidence = markdown.NeutralLine(f.Claim), markdown.Neutral(f.Evidence)
	}
	return a, true
}

// capital is a line that begins as a sentence does.
func capital(s string) string {
	_, n := utf8.DecodeRuneInString(s)
	return strings.ToUpper(s[:n]) + s[n:]
}
