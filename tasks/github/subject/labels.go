package subject

import (
	"slices"
	"strings"

	"github.com/google/go-github/v60/github"
)

// IsLabel reports whether two names are those of one label. GitHub keeps the case in which a label was created, and
// otherwise does not distinguish it.
func IsLabel(name, label string) bool { return strings.EqualFold(name, label) }

// HasLabel reports whether a label is among those of a pull request or an issue.
func HasLabel(labels []*github.Label, label string) bool {
	return slices.ContainsFunc(labels, func(l *github.Label) bool { return IsLabel(l.GetName(), label) })
}

// IsLabelling reports whether an event of a history is that a label was set.
func IsLabelling(e *github.IssueEvent, label string) bool {
	return e.GetEvent() == ActionLabeled && IsLabel(e.GetLabel().GetName(), label)
}

// Ghost is the name that GitHub shows for deleted accounts. It has no permissions.
const Ghost = "ghost"
