package github

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/errand-fleet/errand/internal/markdown"
	"github.com/errand-fleet/errand/internal/untrusted"
	"github.com/errand-fleet/errand/tasks"
)

// Bounds of the remarks in a prompt, the newest first.
const (
	maxRemarks = 50
	maxBatch   = 20_000 // characters of all
	maxRemark  = 10_000 // characters of one
	maxHunk    = 3_000  // characters of the diff above a line, its end
)

// batch holds the remarks on a pull request or an issue, up to the request, oldest first.
type batch struct {
	me      string
	kind    string // of what they are on
	remarks []remark
	asked   remark // the request; only fields that its event may lack are used
}

// unanswered returns the remarks since the last answered one, and those in the same thread or review as the request.
func (k conversation) unanswered(ctx context.Context) (batch, error) {
	before, err := k.b.memory.cursor(k.o).Load(ctx)
	if err != nil {
		return batch{}, err
	}
	return k.gather(ctx, before.Until, func(b batch, r remark) bool {
		mine := strings.EqualFold(r.author, b.me)
		last := r.spot == before.Last || before.Last.Place == inReview && r.review == before.Last.ID
		switch {
		case r.Thread != 0 && r.Thread == k.o.Asked.Thread:
			return true
		case r.review != 0 && r.review == b.asked.review:
			return true
		}
		return !mine && !last && !r.at.Before(before.Until) // there may be others in the same second
	})
}

// everything returns all remarks.
func (k conversation) everything(ctx context.Context) (batch, error) {
	return k.gather(ctx, time.Time{}, func(batch, remark) bool { return true })
}

// gather reads the wanted remarks. It leaves out remarks written or edited after the request, because the author of the
// request has not seen them. It also leaves out the request itself, which is known from the event.
func (k conversation) gather(ctx context.Context, since time.Time, wanted func(batch, remark) bool) (batch, error) {
	b := batch{kind: k.o.kind()}
	var err error
	if b.me, err = k.forge.Login(ctx); err != nil {
		return b, k.briefError("read "+k.o.String(), err)
	}
	var all []remark
	lists := []remarks{k.comments(ctx, since)}
	if k.pr != nil {
		lists = append(lists, k.lineComments(ctx, time.Time{}), k.reviews(ctx))
	}
	for _, list := range lists {
		for r, err := range list {
			if err != nil {
				return b, k.briefError("read remarks on "+k.o.String(), err)
			}
			if r.spot == k.o.Asked.spot {
				b.asked = r
			}
			all = append(all, r)
		}
	}
	until := k.o.Asked.At
	for _, r := range all {
		late := r.at.After(until) || r.edited.After(until)
		if late && r.review != 0 && r.review == b.asked.review && r.author == k.task.Actor {
			late = false // GitHub dates comments of a review to about the time it was submitted
		}
		if late || r.spot == k.o.Asked.spot || r.isNoise(b.me) || !wanted(b, r) {
			continue
		}
		b.remarks = append(b.remarks, r)
	}
	slices.SortStableFunc(b.remarks, func(x, y remark) int {
		return cmp.Or(x.at.Compare(y.at), cmp.Compare(x.ID, y.ID))
	})
	return b, nil
}

// isNoise reports whether a remark tells the agent nothing: it has no text besides a command and the name of a finding,
// or it is errand's note on a command or its comment with the state of an issue.
func (r remark) isNoise(me string) bool {
	if m := replyMark.FindStringSubmatch(r.body); m != nil && strings.EqualFold(r.author, me) {
		return tasks.EndingKind(m[2]) == noteEnding
	}
	page := markdown.ReadPage(r.body)
	text, _ := page.Without(me)
	word, words := readCommand(text.String())
	c := findCommand(word)
	bare := words == "" || c.control != nil && c.argument && !strings.ContainsAny(words, " \n")
	return page.String() == "" || r.author == me && strings.HasPrefix(r.body, statusMark) || c.word != "" && bare
}

// asksMore reports whether a review has text besides its requests: each comment with a request is a separate task.
func (b batch) asksMore() bool {
	return untrusted.Visible(b.asked.body) != "" || slices.ContainsFunc(b.remarks, func(r remark) bool {
		return r.review == b.asked.review && !r.addressesErrand(b.me)
	})
}

// prompt returns the prompt of a request: its text, and the remarks it may refer to.
func (b batch) prompt(k conversation) string {
	where := map[place]string{
		inConversation: "in the conversation of " + k.o.what(),
		onLine:         "on a line of the diff of " + k.o.what(),
		inReview:       "in a review of " + k.o.what(),
		inIssue:        "in " + k.o.what(),
	}[k.o.Asked.Place]
	return strings.TrimSpace(fmt.Sprintf("@%s asks you, %s:\n\n%s\n\n%s%s", k.task.Actor, where, k.task.Prompt,
		b.asked.quotedHunk(), b.quote()))
}

// commandPrompt returns the prompt of a command with the text below it.
func (b batch) commandPrompt(k conversation, what string) string {
	return strings.TrimSpace(what + k.o.added(k.task) + "\n\n" + b.quote())
}

// quote quotes the remarks, each in its own fence, or returns "". If there are too many, it drops the oldest.
func (b batch) quote() string {
	var blocks []string
	left, shown := maxBatch, map[int64]bool{0: true, b.asked.Thread: true}
	for _, r := range slices.Backward(b.remarks[max(0, len(b.remarks)-maxRemarks):]) {
		block := ""
		if !shown[r.Thread] {
			block, shown[r.Thread] = r.quotedHunk(), true
		}
		block += untrusted.Quote("comment of "+r.speaker(b.me), untrusted.Cut(untrusted.Visible(r.body), maxRemark))
		if left -= utf8.RuneCountInString(block); left < 0 {
			break
		}
		blocks = append(blocks, block)
	}
	if len(blocks) == 0 {
		return ""
	}
	slices.Reverse(blocks)
	return "These earlier remarks on the " + b.kind + ", oldest first, may be relevant:\n\n" +
		strings.Join(blocks, "\n")
}

// quotedHunk quotes the part of the diff above a remark on a line, or returns "".
func (r remark) quotedHunk() string {
	if r.hunk == "" {
		return ""
	}
	at := untrusted.Line(r.path, 300)
	if r.line > 0 {
		at += fmt.Sprintf(":%d", r.line)
	}
	hunk := []rune(r.hunk)
	return untrusted.Quote("the diff up to "+at, string(hunk[max(0, len(hunk)-maxHunk):]))
}
