package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/errand-fleet/errand/cmd/enqueue/internal/term"
	"github.com/errand-fleet/errand/internal/display"
	"github.com/errand-fleet/errand/tasks/github/findings"
)

// answerText returns a task's answer for people: the findings of a review in words, other JSON indented, and anything
// else as it is. It is safe to print.
func answerText(out *term.Out, v task) string {
	if v.Task.Class == "review" {
		if a, err := findings.Read(v.Ending.Result.Structured); err == nil {
			return reviewText(out, a)
		}
	}
	return display.Text(indentJSON(v.said()))
}

// reviewText returns the result of a review, the most serious findings first.
func reviewText(out *term.Out, a findings.Answer) string {
	b := &strings.Builder{}
	fmt.Fprintln(b, strings.TrimSpace(display.Text(a.Summary)))
	styles := map[findings.Severity]term.Style{
		findings.Critical: term.Red, findings.Major: term.Yellow, findings.Minor: term.Cyan,
	}
	slices.SortStableFunc(a.Findings, func(x, y findings.Finding) int { return x.Severity.Compare(y.Severity) })
	for _, f := range a.Findings {
		fmt.Fprintf(b, "\n%s %s\n", out.Paint(styles[f.Severity], strings.ToUpper(string(f.Severity))),
			out.Paint(term.Bold, display.Line(place(f))))
		for _, text := range []string{f.Claim, f.Evidence} {
			if text = strings.TrimSpace(display.Text(text)); text != "" {
				fmt.Fprintf(b, "  %s\n", strings.ReplaceAll(text, "\n", "\n  "))
			}
		}
		lines := func(sign string, style term.Style, text string) {
			for line := range strings.Lines(text) {
				fmt.Fprintf(b, "    %s\n", out.Paint(style, sign+display.Code(strings.TrimRight(line, "\r\n"))))
			}
		}
		if f.Suggestion != "" {
			lines("-", term.Red, f.Original)
			lines("+", term.Green, f.Suggestion)
		}
	}
	count := map[findings.Status]int{}
	for _, c := range a.Earlier {
		count[c.Status]++
	}
	var earlier []string
	for _, s := range []findings.Status{findings.Open, findings.Fixed, findings.Outdated} {
		if n := count[s]; n > 0 {
			earlier = append(earlier, fmt.Sprintf("%d %s", n, s))
		}
	}
	if len(earlier) > 0 {
		fmt.Fprintf(b, "\nearlier findings: %s\n", strings.Join(earlier, ", "))
	}
	return strings.TrimSpace(b.String())
}

// place returns what a finding is about: path:line, path:first-last, a file, or the change as a whole.
func place(f findings.Finding) string {
	switch {
	case f.Path == "":
		return "the change as a whole"
	case f.Line == 0:
		return f.Path
	case f.StartLine > 0 && f.StartLine < f.Line:
		return fmt.Sprintf("%s:%d-%d", f.Path, f.StartLine, f.Line)
	}
	return fmt.Sprintf("%s:%d", f.Path, f.Line)
}
