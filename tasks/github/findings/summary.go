package findings

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/errand-fleet/errand/internal/markdown"
)

// Page knows the web addresses that a text links to.
type Page struct {
	Repo string // its address, without a trailing slash
	Pull string // address of the pull request
	Head string // the commit that was reviewed
	Fork bool   // it comes from a fork, to which errand pushes nothing
}

// Headline returns the result in a few words that fit on one line, such as "2 new findings, 1 fixed".
func (p Plan) Headline() string {
	var parts []string
	switch n := len(p.Inline) + len(p.Summary); {
	case n > 0:
		parts = append(parts, plural(n, "new finding"))
	case len(p.StillOpen)+len(p.Fixed) > 0:
		parts = append(parts, "nothing new")
	default:
		parts = append(parts, "no findings")
	}
	if n := len(p.StillOpen); n > 0 {
		parts = append(parts, fmt.Sprintf("%d still open", n))
	}
	if n := len(p.Fixed); n > 0 {
		parts = append(parts, fmt.Sprintf("%d fixed", n))
	}
	return strings.Join(parts, ", ")
}

// Intro returns the body of the review that carries the comments.
func (p Plan) Intro(pg Page) string {
	text := fmt.Sprintf("%s at %s.", plural(len(p.Inline), "finding"), short(pg.Head))
	if n := len(p.Summary); n > 0 {
		text += fmt.Sprintf(" %d more in the summary.", n)
	}
	return text + "\n"
}

// Whole returns the body of a review without comments, for when GitHub refuses them. It has the findings in full.
func (p Plan) Whole(pg Page) string {
	plain := func(f Finding) string {
		f.Exact = false // without lines, no button can replace them
		return f.marked(pg.full(f))
	}
	return Plan{Inline: p.Inline}.Intro(pg) + "\n" + strings.Join(each(p.Inline, plain), "\n\n") + "\n"
}

// Aside returns the body of a review that lists the new findings of the summary, when no new finding is on a line.
func (p Plan) Aside(pg Page) string {
	return fmt.Sprintf("%s at %s, in the summary:\n\n%s\n", plural(len(p.Summary), "finding"), short(pg.Head),
		strings.Join(each(p.Summary, pg.line), "\n"))
}

// Text returns the body of the summary: the agent's summary and every finding, in full if it appears nowhere else.
func (p Plan) Text(summary string, pg Page) string {
	parts := []string{summary}
	section := func(title, between string, items []string) {
		if len(items) > 0 {
			parts = append(parts, "#### "+title, strings.Join(items, between))
		}
	}
	section("New, on lines of the diff", "\n", each(p.Inline, pg.line))
	section("New", "\n\n", each(p.Summary, pg.full))
	section("Still open", "\n", each(p.StillOpen, pg.known))
	section("Fixed", "\n", each(p.Fixed, pg.known))
	parts = append(parts, p.omitted(pg)...)
	if len(p.Inline)+len(p.Summary)+len(p.StillOpen) > 0 {
		next := "**Next:** push fixes, or comment `/fix` to have errand make them."
		if pg.Fork {
			next = "**Next:** push fixes."
		}
		parts = append(parts, next+" Reply to a finding to discuss it.")
	}
	return strings.TrimSpace(strings.Join(parts, "\n\n"))
}

// omitted says which findings are not shown as such, and why, and how many of the others had no second look.
func (p Plan) omitted(pg Page) (parts []string) {
	if p.Below > 0 {
		parts = append(parts, "Not shown: "+plural(p.Below, "finding")+" below the repository's severity threshold.")
	}
	if n := len(p.Dropped) + p.Unlisted; n > 0 {
		were := map[bool]string{true: " was", false: " were"}[n == 1]
		dropped := func(f Finding) string { return pg.line(f) + "\n\n  Dropped: " + f.Reason }
		list := each(p.Dropped, dropped)
		if p.Unlisted > 0 {
			list = append(list, fmt.Sprintf("- %d more", p.Unlisted))
		}
		parts = append(parts, plural(n, "finding")+were+" dropped after a second look, which came after the "+
			"assessment above:\n\n"+strings.Join(list, "\n"))
	}
	unseen := slices.DeleteFunc(p.All(), func(f Finding) bool { return f.Verdict != Unchecked })
	if n := len(unseen); n > 0 {
		parts = append(parts, plural(n, "new finding")+" had no second look.")
	}
	return parts
}

// each formats every element of a list.
func each[T any](all []T, say func(T) string) (said []string) {
	for _, one := range all {
		said = append(said, say(one))
	}
	return said
}

// Lines lists the findings without details, for short texts.
func (p Plan) Lines(pg Page) string {
	open := func(k Known) string { return pg.line(k.Finding) + " (still open)" }
	return strings.Join(append(each(p.All(), pg.line), each(p.StillOpen, open)...), "\n")
}

// line formats a finding as a list item.
func (pg Page) line(f Finding) string {
	return "- " + f.Severity.Label() + pg.placed(f)
}

// known formats a finding of an earlier review with a link to its thread, or in full if it has none.
func (pg Page) known(k Known) string {
	text := pg.line(k.Finding)
	switch {
	case k.Status == Fixed:
		text = "- ~~" + k.Claim + "~~"
	case k.Comment == 0:
		text = pg.full(k.Finding)
	}
	if k.Comment != 0 {
		text += fmt.Sprintf(" ([thread](%s#discussion_r%d))", pg.Pull, k.Comment)
	}
	return text
}

// full formats a finding with all details as a list item. Markdown that is left open in it ends with the item. The
// finding has no thread to resolve, so the item says how to dismiss it.
func (pg Page) full(f Finding) string {
	details := f.details() + "\n\n<sub>To dismiss this, comment `/dismiss " + f.ID + "`.</sub>"
	return pg.line(f) + strings.ReplaceAll(strings.ReplaceAll(details, "\n", "\n  "), "\n  \n", "\n\n")
}

// placed formats a claim after its place, to follow a severity.
func (pg Page) placed(f Finding) string {
	if f.Path == "" {
		return ": " + f.Claim
	}
	label, anchor := f.Path, ""
	if f.Line > 0 {
		label += fmt.Sprintf(":%d", f.Line)
		anchor = fmt.Sprintf("#L%d", f.Line)
		if f.StartLine > 0 {
			anchor = fmt.Sprintf("#L%d-L%d", f.StartLine, f.Line)
		}
	}
	if f.Side == Left { // deleted lines are not in the head
		return fmt.Sprintf(" %s (removed): %s", markdown.Span(label), f.Claim)
	}
	var parts []string
	for part := range strings.SplitSeq(f.Path, "/") {
		parts = append(parts, url.PathEscape(part))
	}
	address := strings.NewReplacer("(", "%28", ")", "%29").Replace(strings.Join(parts, "/"))
	return fmt.Sprintf(" [%s](%s/blob/%s/%s%s): %s", markdown.Span(label), pg.Repo, pg.Head, address, anchor, f.Claim)
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

func short(sha string) string { return sha[:min(len(sha), 7)] }

// This file puts a review into words, in Markdown. The text of findings and summaries is inserted unchanged: the caller
// has made it harmless. Paths have not been made harmless; they appear only as code.

// markerForm matches at the beginning of a line, where the text of a finding cannot appear.
var markerForm = regexp.MustCompile(`(?m)^<!-- errand:finding=([a-z0-9-]{1,40}) -->`)

// FindingOf returns the ID of the finding that a comment by errand describes. The caller checks the author.
func FindingOf(body string) (id string, ok bool) {
	m := markerForm.FindStringSubmatchIndex(body)
	if m == nil || m[0] != 0 {
		return "", false
	}
	return body[m[2]:m[3]], true
}

// FindingsIn returns the IDs of all findings that a text by errand contains in full.
func FindingsIn(body string) (ids []string) {
	for _, m := range markerForm.FindAllStringSubmatch(body, -1) {
		ids = append(ids, m[1])
	}
	return ids
}

// marked puts the finding's marker, which GitHub does not show, before a text.
func (f Finding) marked(text string) string {
	return fmt.Sprintf("<!-- errand:finding=%s -->\n%s", f.ID, text)
}

// Comment returns the body of a finding's comment on its line.
func Comment(f Finding) string {
	return f.marked(fmt.Sprintf("%s: %s%s\n", f.Severity.Label(), f.Claim, f.details()))
}

// details returns everything below the claim.
func (f Finding) details() string {
	var b strings.Builder
	if f.Evidence != "" {
		b.WriteString("\n\n" + f.Evidence)
	}
	if f.Verdict == Uncertain {
		b.WriteString(strings.TrimSuffix("\n\n**Uncertain** after a second look: "+f.Reason, ": "))
	}
	switch {
	case f.Suggestion == "":
	case f.Exact:
		b.WriteString("\n\n" + markdown.Fenced("suggestion", f.Suggestion))
	default:
		b.WriteString("\n\nSuggested change:\n\n" + markdown.Fenced("", f.Suggestion))
	}
	return b.String()
}

// Notice formats a review for places where no finding is on a line, and for pages that do not show code in lists. Each
// new finding is given in full, in its own paragraphs.
func (p Plan) Notice(summary string, pg Page) string {
	parts := []string{summary}
	for _, f := range p.All() {
		f.Exact = false // without lines, no button can replace them
		parts = append(parts, f.Severity.Label()+pg.placed(f)+f.details())
	}
	section := func(title string, known []Known, say func(Known) string) {
		if len(known) > 0 {
			parts = append(parts, "**"+title+"**\n"+strings.Join(each(known, say), "\n"))
		}
	}
	section("Still open", p.StillOpen, func(k Known) string { return pg.line(k.Finding) })
	section("Fixed", p.Fixed, func(k Known) string { return "- ~~" + k.Claim + "~~" })
	parts = append(parts, p.omitted(pg)...)
	return strings.TrimSpace(strings.Join(parts, "\n\n"))
}

// News reports whether a plan has anything that was not posted before.
func (p Plan) News() bool { return len(p.Inline)+len(p.Summary)+len(p.Fixed) > 0 }
