// Package pattern matches names, such as those of repositories, with patterns such as acme/*: those of [path.Match],
// ignoring case.
//
// All functions are pure and may be called from any goroutine.
package pattern

import (
	"path"
	"slices"
	"strings"
)

// Check reports whether a pattern can match a name.
func Check(pattern string) bool {
	_, err := path.Match(pattern, "")
	return err == nil && pattern != ""
}

// Match reports whether a pattern matches a name.
func Match(pattern, name string) bool {
	ok, err := path.Match(strings.ToLower(pattern), strings.ToLower(name))
	return ok && err == nil
}

// MatchText reports whether a pattern matches a text that is no path, such as the name of a model: * and ? match a
// slash, too.
func MatchText(pattern, text string) bool {
	flat := strings.NewReplacer("/", "\x00")
	return Match(flat.Replace(pattern), flat.Replace(text))
}

// Covers reports whether each name is matched by one of the patterns. Without patterns every name is covered.
func Covers(patterns []string, names ...string) bool {
	uncovered := func(name string) bool {
		return !slices.ContainsFunc(patterns, func(pattern string) bool { return Match(pattern, name) })
	}
	return len(patterns) == 0 || !slices.ContainsFunc(names, uncovered)
}
