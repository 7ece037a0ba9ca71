package review

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/errand-fleet/errand/internal/markdown"
)

// Page tells where things are that a text points to.
type Page struct {
	Repo string // its address, without a slash at the end
	Pull string // address of the pull request
	Head string // the commit that was reviewed
}

// Headline is the result in a few words that can stand in a line of their own, such as "2 new findings, 1 fixed".
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

// Intro is the body of the review that carries the comments.
func (p Plan) Intro(pg Page) string {
	text := fmt.Sprintf("%s at %s.", plural(len(p.Inline), "finding"), short(pg.Head))
	if n := len(p.Summary); n > 0 {
		text += fmt.Sprintf(" %d more in the summary.", n)
	}
	return text + "\n"
}

// Whole is the body of a review that carries no comments, because GitHub does not take them: it has the findings in full.
func (p Plan) Whole(pg Page) string {
	plain := func(f Finding) string {
		f.Exact = false // there are no lines here that a button could replace
		return f.marked(pg.full(f))
	}
	return Plan{Inline: p.Inline}.Intro(pg) + "\n" + strings.Join(each(p.Inline, plain), "\n\n") + "\n"
}

// Aside is the body of a review that says what is new in the summary, where nothing new is at any line.
func (p Plan) Aside(pg Page) string {
	return fmt.Sprintf("%s at %s, in the summary:\n\n%s\n", plural(len(p.Summary), "finding"), short(pg.Head), strings.Join(each(p.Summary, pg.line), "\n"))
}

// Text is the body of the summary: what the agent says of the whole, and every finding, with those in full that stand nowhere else.
func (p Plan) Text(summary string, pg Page) string {
	parts := []string{summary}
	section := func(title, between string, items []string) {
		if len(items) > 0 {
			parts = append(parts, "#### "+title, strings.Join(items, between))
		}
	}
	section("New, at their lines", "\n", each(p.Inline, pg.line))
	section("New, in full here", "\n\n", each(p.Summary, pg.full))
	section("Still open", "\n", each(p.StillOpen, pg.known))
	section("Fixed", "\n", each(p.Fixed, pg.known))
	if p.Below > 0 {
		parts = append(parts, plural(p.Below, "finding")+" below the repository's floor: not told.")
	}
	return strings.TrimSpace(strings.Join(parts, "\n\n"))
}

// each is a list in words.
func each[T any](all []T, say func(T) string) (said []string) {
	for _, one := range all {
		said = append(said, say(one))
	}
	return said
}

// Lines lists the findings without details, for where there is no room.
func (p Plan) Lines(pg Page) string {
	open := func(k Known) string { return pg.line(k.Finding) + " (still open)" }
	return strings.Join(append(each(p.All(), pg.line), each(p.StillOpen, open)...), "\n")
}

// line is a finding as an item of a list.
func (pg Page) line(f Finding) string {
	return fmt.Sprintf("- **%s**%s", f.Severity, pg.placed(f))
}

// known is a finding of an earlier review, with the way to where it is talked about; in full, if that is nowhere else.
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

// full is a finding with all that there is to say, as an item of a list: whatever is left open in it ends with the item. It has no thread that
// somebody could resolve, so it says how else it is ended.
func (pg Page) full(f Finding) string {
	details := f.details() + "\n\n<sub>To end this, comment `/dismiss " + f.ID + "`.</sub>"
	return pg.line(f) + strings.ReplaceAll(strings.ReplaceAll(details, "\n", "\n  "), "\n  \n", "\n\n")
}

// placed is a claim behind its place, for after a severity.
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
	if f.Side == Left { // what is gone is not in the head
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
