package review

import (
	"fmt"
	"strings"
)

// Notice formats a review for places where no finding is on a line, and for pages that do not show code in lists. Each
// new finding is given in full, in its own paragraphs.
func (p Plan) Notice(summary string, pg Page) string {
	parts := []string{summary}
	for _, f := range p.All() {
		f.Exact = false // without lines, no button can replace them
		parts = append(parts, fmt.Sprintf("**%s**%s%s", f.Severity, pg.placed(f), f.details()))
	}
	section := func(title string, known []Known, say func(Known) string) {
		if len(known) > 0 {
			parts = append(parts, "**"+title+"**\n"+strings.Join(each(known, say), "\n"))
		}
	}
	section("Still open", p.StillOpen, func(k Known) string { return pg.line(k.Finding) })
	section("Fixed", p.Fixed, func(k Known) string { return "- ~~" + k.Claim + "~~" })
	if p.Below > 0 {
		parts = append(parts, plural(p.Below, "finding")+" below the repository's severity threshold omitted.")
	}
	return strings.TrimSpace(strings.Join(parts, "\n\n"))
}

// News reports whether a plan has anything that was not posted before.
func (p Plan) News() bool { return len(p.Inline)+len(p.Summary)+len(p.Fixed) > 0 }
