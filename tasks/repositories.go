package tasks

import (
	"slices"
	"strings"
)

// Repositories returns all repositories of a task, the main one first; nil if it has none.
func (t Task) Repositories() []string {
	if t.Repo == "" {
		return nil
	}
	return t.Places()
}

// Places returns the repositories of a task like Repositories, and "" for work without one.
func (t Task) Places() []string { return append([]string{t.Repo}, t.Also...) }

// Has reports whether a repository is one of the task's; "" is that of a task without one.
func (t Task) Has(repo string) bool {
	return strings.EqualFold(repo, t.Repo) || slices.ContainsFunc(t.Also, func(one string) bool {
		return strings.EqualFold(one, repo)
	})
}
