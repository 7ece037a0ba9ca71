package web

import (
	"strings"
	"time"
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

// ill is what keeps the model's credential from working now: it is refused, or held until a time. Empty: nothing.
func ill(list []store.Credential, now time.Time) string {
	for _, c := range list {
		switch {
		case c.Refused != "":
			return "the model refuses the credential of the workers: " + c.Refused
		case c.Until.After(now):
			return "no run starts before " + at(c.Until) + ": " + c.Why
		}
	}
	return ""
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
