package console

import (
	"context"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
)

// around is how many lines above and below a finding are shown, and mostAround how many in all.
const (
	around     = 3
	mostAround = 40
)

// findingsView is the component with the result of a review.
type findingsView struct {
	Review        *tasks.ReviewResult
	Summary       template.HTML
	New, Earlier  []findingView // the new findings, and those of earlier reviews
	Critical      int           // of the open ones
	Major, Minor  int
	Open, Settled int
	Next          string // what to do now, in a sentence
}

// findingView is one finding.
type findingView struct {
	tasks.Finding
	Claim, Evidence template.HTML
	Where           string // path:line
	State           string // in words
	Lines           []diffLine
}

// readWork adds a run's changes and findings to its page. The page is shown without what cannot be read, for example
// because the object store is away.
func (c *Console) readWork(ctx context.Context, s tasks.Status, v *taskView) {
	var err error
	v.Changes = c.shortChanges(ctx, s)
	if v.Live && v.Changes != nil { // the steps are what matters: they come soon after
		for i := range v.Changes.Files {
			v.Changes.Files[i].Open = false
		}
	}
	if v.Findings, err = c.findings(ctx, s); err != nil {
		c.view.Log.Warn("read findings", "run", s.Task.ID, "err", err)
	}
	if v.Findings != nil { // they say all of it
		v.Answer, v.Sentence, v.Next = "", "", ""
		if v.Findings.Open > 0 {
			v.Findings.Next = "Next: push fixes. errand then reviews them."
			if s.Task.Profile != agent.Untrusted {
				v.Findings.Next = "Next: push fixes, or comment /fix on the pull request to have errand make them."
			}
		}
	}
}

// reviewer returns the reviews of the source of an ended task, or nil.
func (c *Console) reviewer(s tasks.Status) tasks.Reviewer {
	if s.Ending == nil {
		return nil
	}
	return c.reviews[s.Task.Source]
}

// findings returns the view of an ended review, or nil if the task is none.
func (c *Console) findings(ctx context.Context, s tasks.Status) (*findingsView, error) {
	source := c.reviewer(s)
	if source == nil {
		return nil, nil
	}
	r, err := source.Review(ctx, s.Task, *s.Ending)
	if err != nil || r == nil {
		return nil, err
	}
	// Without the change, the findings are shown without their lines.
	changes, err := c.view.Desk.Changes(ctx, s.Task.ID)
	if err != nil {
		c.view.Log.Debug("findings without lines", "run", s.Task.ID, "err", err)
	}
	v := &findingsView{Review: r, Summary: formatMarkdown(r.Summary)}
	paint := newPainter(c.view.Now)
	for _, f := range r.Findings {
		shown := findingView{
			Finding: f, Claim: formatMarkdown(f.Claim), Evidence: formatMarkdown(f.Evidence), Where: where(f),
			State: stateOf(f, r.Head),
		}
		if f.Here {
			shown.Lines = linesOf(f, changes)
			paint.paint(f.Path, shown.Lines)
		}
		if f.New {
			v.New = append(v.New, shown)
		} else {
			v.Earlier = append(v.Earlier, shown)
		}
		if f.Status != "open" {
			v.Settled++
			continue
		}
		switch v.Open++; f.Severity {
		case "critical":
			v.Critical++
		case "major":
			v.Major++
		default:
			v.Minor++
		}
	}
	return v, nil
}

// where says where a finding is.
func where(f tasks.Finding) string {
	switch {
	case f.Path == "":
		return "the change as a whole"
	case f.Line == 0:
		return fileName(f.Path)
	case f.StartLine > 0:
		return fmt.Sprintf("%s:%d–%d", fileName(f.Path), f.StartLine, f.Line)
	}
	return fmt.Sprintf("%s:%d", fileName(f.Path), f.Line)
}

// stateOf says what has become of a finding, as seen from a review of head.
func stateOf(f tasks.Finding, head string) string {
	since := ""
	if f.First != "" && f.First != head {
		since = ", found at " + f.First
	}
	switch f.Status {
	case "fixed":
		return "fixed at " + f.Last + since
	case "dismissed":
		return "dismissed" + since
	case "outdated":
		return "outdated at " + f.Last + since
	}
	switch {
	case f.New && f.Last != head && f.Last != "":
		since = ", still open at " + f.Last
	case f.New:
		since = ""
	}
	if f.Answered {
		since += ", answered"
	}
	if f.New {
		return "new" + since
	}
	return "still open" + since
}

// linesOf returns the lines of a finding and their neighbours from the reviewed change, or else from the finding.
func linesOf(f tasks.Finding, c tasks.Changes) (lines []diffLine) {
	first, last := f.Line, f.Line
	if f.StartLine > 0 {
		first = f.StartLine
	}
	if at := slices.IndexFunc(c.Files, func(file tasks.ChangedFile) bool { return file.Name == f.Path }); at >= 0 &&
		f.Line > 0 {
		for _, l := range parsePatch(c.Files[at].Patch, "at-"+f.ID) {
			n := l.New
			if f.Removed {
				n = l.Old
			}
			if n >= max(1, first-around) && n <= last+around && len(lines) < mostAround {
				l.Mark = n >= first && n <= last
				lines = append(lines, l)
			}
		}
	}
	if len(lines) > 0 || f.Original == "" {
		return lines
	}
	for i, text := range strings.Split(f.Original, "\n") {
		l := diffLine{New: first + i, ID: fmt.Sprintf("at-%s-L%d", f.ID, first+i), Sign: " ", text: text, Mark: true}
		l.Parts = plainParts(text)
		lines = append(lines, l)
	}
	return lines
}
