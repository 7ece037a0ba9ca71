package tasks

import (
	"context"
	"fmt"
	"math/bits"
	"strings"
	"time"

	"github.com/errand-fleet/errand/agent"
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

// follows says of a task that nobody has looked at yet how many of its thread come first.
func (s *Status) follows(n int) {
	if s.Why == noWorker && n > 0 {
		s.Why = blockedBy(store.Blocked{Place: n})
	}
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

// Waits marks, as the Tool of a notice among a task's events, why the task waits.
const Waits = "waiting"

// waitsApart is the least time between two words on why a task waits: places in a line change often, and Slack's edits are counted.
const waitsApart = 15 * time.Second

// fullKey names what is told of a full scope: another place further back is news only when it has halved.
func fullKey(b store.Blocked) string {
	place := b.Place
	if place > 3 {
		place = 1 << (bits.Len(uint(place)) - 1)
	}
	return fmt.Sprintf("%s %d", b.Scope, place)
}

// tellWait tells those who follow a task, and the place where it was asked for, why it waits, unless that was told last. Nobody waits for it.
func (w *Worker) tellWait(id string, delivery int, key, why string) {
	w.posting.Go(func() {
		ctx, cancel := context.WithTimeout(withRun(context.Background(), id), sayLimit)
		defer cancel()
		text := "Waiting: " + why
		event := agent.Event{Kind: agent.Notice, Tool: Waits, Text: text, Time: time.Now()}
		fresh, err := w.store.Tell(ctx, id, delivery, key, mustJSON(event), waitsApart)
		if err == nil && fresh {
			err = w.showWait(ctx, id, text)
		}
		if err != nil {
			w.log.Warn("tell why a task waits", "run", id, "err", err)
		}
	})
}

func (w *Worker) showWait(ctx context.Context, id, text string) error {
	rec, err := w.store.Get(ctx, id)
	if err != nil {
		return err
	}
	t, source, err := w.read(rec)
	if to, ok := source.(Waiter); err == nil && ok && rec.State == store.Waiting {
		err = to.Waits(ctx, t, text)
	}
	return err
}
