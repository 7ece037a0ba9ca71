// Package refname checks the names of branches and other refs of git, which become arguments of git.
//
// All functions are pure and may be called from any goroutine.
package refname

import (
	"regexp"
	"strings"
)

// forbidden matches what git check-ref-format forbids. Git may still read a name without it as something else than a
// ref, such as an ID (x-0-g1234567): look names up only where git takes the full name of a ref.
var forbidden = regexp.MustCompile(`[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/\.|\.lock(/|$)|^[-/.]|[/.]$`)

// Valid reports whether a name can be that of a ref. The empty name is valid.
func Valid(name string) bool { return !forbidden.MatchString(name) }

// Branch reports whether a name can be that of a branch. Full names of refs cannot: refs/pull/1/head would be the head
// of a pull request, possibly one from a fork.
func Branch(name string) bool { return Valid(name) && !strings.HasPrefix(name, "refs/") }
