package web

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/errand-fleet/errand/store"
)

// able reports whether a worker takes tasks and can run them.
func able(w store.Worker) bool {
	cli, err := cliOf(w)
	return err == nil && !w.Draining && cli.OK
}

// trouble is why no worker would run a task that was submitted now; empty when one would.
func trouble(seen []store.Worker) string {
	switch {
	case len(seen) == 0:
		return "no worker is alive"
	case !slices.ContainsFunc(seen, able):
		return "no worker can run tasks: their health says why"
	}
	return ""
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

// unable is what keeps the workers there are from running tasks, in the words of the first of them, and what to do about it; empty when one of
// them can, or when it is only that they shut down.
func unable(seen []store.Worker) (what, remedy string) {
	if len(seen) == 0 {
		return "no worker is alive", "start one, with the same REDIS_URL"
	}
	if slices.ContainsFunc(seen, able) {
		return "", ""
	}
	for _, w := range seen {
		if c, err := cliOf(w); err == nil && !c.OK {
			return fmt.Sprintf("worker %s cannot run tasks: %s", w.Host, c.Problem), c.Remedy
		}
	}
	return trouble(seen), ""
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
