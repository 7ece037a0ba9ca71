package review

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/errand-fleet/errand/internal/markdown"
)

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
	return f.marked(fmt.Sprintf("**%s**: %s%s\n", f.Severity, f.Claim, f.details()))
}

// details returns everything below the claim.
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
