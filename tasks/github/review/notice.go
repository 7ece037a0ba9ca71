package review

import (
	"fmt"
	"strings"
)

// Notice is a review for where nothing of it stands at lines, and for pages that show no code within lists: each new finding is told in
// full, in paragraphs of its own.
func (p Plan) Notice(summary string, pg Page) string {
	parts := []string{summary}
	for _, f := range p.All() {
		f.Exact = false // there are no lines here that a button could replace
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
		parts = append(parts, plural(p.Below, "finding")+" below the repository's floor: not told.")
	}
	return strings.TrimSpace(strings.Join(parts, "\n\n"))
}

// News reports whether a plan names anything that was not told before.
func (p Plan) News() bool { return len(p.Inline)+len(p.Summary)+len(p.Fixed) > 0 }
