package tasks

import (
	"fmt"
	"strings"

	"github.com/errand-fleet/errand/store"
)

// noWorker is why a task waits that no worker has looked at yet.
const noWorker = "no worker has been free for it yet"

// reason is why a task waits, as a clause for people: the same wherever it is shown. Empty for a task that does not wait.
func reason(rec store.Record) string {
	switch {
	case rec.State == store.Running:
		return rec.Why // it was claimed, and has not begun
	case rec.State != store.Waiting:
		return ""
	case rec.Blocked != (store.Blocked{}):
		return blockedBy(rec.Blocked)
	case rec.Why != "":
		return rec.Why
	}
	return noWorker
}

// blockedBy says what a task was refused for.
func blockedBy(b store.Blocked) string {
	switch {
	case b.Scope != "":
		return fmt.Sprintf("%d of %d runs busy %s; you are %s", b.Runs, b.Max, inScopeOf(b.Scope), ordinal(b.Place))
	case b.Place <= 1:
		return "what comes before it in its thread is at work"
	}
	return fmt.Sprintf("%d requests of its thread come first", b.Place)
}

// inScopeOf names a scope to people.
func inScopeOf(scope string) string {
	switch kind, name, _ := strings.Cut(scope, ":"); kind + ":" {
	case repoScope:
		return "in " + name
	case userScope:
		return "for whoever asked"
	}
	return "with the model account"
}

// ordinal is 1st, 2nd, 3rd and so on.
func ordinal(n int) string {
	suffix := "th"
	if n/10%10 != 1 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return fmt.Sprintf("%d%s", n, suffix)
}
