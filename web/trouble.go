package web

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

// trouble is why no worker would run a task that was submitted now; empty when one would.
func trouble(seen []store.Worker) string {
	what, _ := tasks.Unable(seen)
	return what
}

// sentences are what is wrong and what to do about it, for people.
func sentences(what, remedy string) string {
	text := capital(what) + "."
	if remedy != "" {
		text += " " + capital(remedy) + "."
	}
	return text
}

func capital(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + strings.TrimSuffix(s[n:], ".")
}
