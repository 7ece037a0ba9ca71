package review

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/errand-fleet/errand/internal/markdown"
)

// The words of a review, in Markdown. The text of findings and summaries goes in as it is: what the agent wrote is to be made harmless
// before. Paths are not, they only ever stand in code.

// markerForm begins a line, where no words of a finding can stand.
var markerForm = regexp.MustCompile(`(?m)^<!-- errand:finding=([a-z0-9-]{1,40}) -->`)

// FindingOf is the ID of the finding that a comment of ours tells. That it is ours is for the caller to know.
func FindingOf(body string) (id string, ok bool) {
	m := markerForm.FindStringSubmatchIndex(body)
	if m == nil || m[0] != 0 {
		return "", false
	}
	return body[m[2]:m[3]], true
}

// FindingsIn are the IDs of all findings that a text of ours tells in full.
func FindingsIn(body string) (ids []string) {
	for _, m := range markerForm.FindAllStringSubmatch(body, -1) {
		ids = append(ids, m[1])
	}
	return ids
}

// marked is a text behind the marker of its finding, which GitHub does not show.
func (f Finding) marked(text string) string {
	return fmt.Sprintf("<!-- errand:finding=%s -->\n%s", f.ID, text)
}

// Comment is the body of a finding at its line.
func Comment(f Finding) string {
	return f.marked(fmt.Sprintf("**%s**: %s%s\n", f.Severity, f.Claim, f.details()))
}

// details is all below the claim.
func (f Finding) details() string {
	var b strings.Builder
	if f.Evidence != "" {
		b.WriteString("\n\n" + f.Evidence)
	}
	switch {
	case f.Suggestion == "":
	case f.Exact:
		b.WriteString("\n\n" + markdown.Fenced("suggestion", f.Suggestion))
	default:
		b.WriteString("\n\nInstead:\n\n" + markdown.Fenced("", f.Suggestion))
	}
	return b.String()
}
