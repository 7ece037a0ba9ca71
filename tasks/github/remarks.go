package github

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/errand-fleet/errand/internal/untrusted"
	"github.com/errand-fleet/errand/tasks/github/thread"
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
	remarks []heard
	asked   heard // the request; only fields that its event may lack are used
}

// unanswered returns the remarks since the last answered one, and those in the same thread or review as the request.
func (k conversation) unanswered(ctx context.Context) (batch, error) {
	before, err := k.b.memory.State(ctx, k.o.Ref)
	if err != nil {
		return batch{}, err
	}
	newest := before.LastAnswered
	return k.gather(ctx, before.AnsweredUntil, func(b batch, r thread.Remark) bool {
		mine := strings.EqualFold(r.Author, b.me)
		last := r.Spot == newest || newest.Place == thread.InReview && r.Review == newest.ID
		switch {
		case r.Thread != 0 && r.Thread == k.o.Asked.Thread:
			return true
		case r.Review != 0 && r.Review == b.asked.Review:
			return true
		}
		return !mine && !last && !r.At.Before(before.AnsweredUntil) // there may be others in the same second
	})
}

// everything returns all remarks.
func (k conversation) everything(ctx context.Context) (batch, error) {
	return k.gather(ctx, time.Time{}, func(batch, thread.Remark) bool { return true })
}

// gather reads the wanted remarks. It leaves out remarks written or edited after the request, because the author of the
// request has not seen them. It also leaves out the request itself, which is known from the event.
func (k conversation) gather(
	ctx context.Context, since time.Time, want func(batch, thread.Remark) bool,
) (batch, error) {
	b := batch{kind: k.o.Kind()}
	var err error
	if b.me, err = k.Forge.Login(ctx); err != nil {
		return b, k.BriefError("read "+k.o.String(), err)
	}
	var all []thread.Remark
	lists := []thread.Remarks{k.Comments(ctx, since)}
	if k.pr != nil {
		lists = append(lists, k.LineComments(ctx, time.Time{}), k.Reviews(ctx))
	}
	for _, list := range lists {
		for r, err := range list {
			if err != nil {
				return b, k.BriefError("read remarks on "+k.o.String(), err)
			}
			if r.Spot == k.o.Asked.Spot {
				b.asked = heard{r, readRemark(r.Body, b.me)}
			}
			all = append(all, r)
		}
	}
	until := k.o.Asked.At
	for _, r := range all {
		late := r.At.After(until) || r.Edited.After(until)
		if late && r.Review != 0 && r.Review == b.asked.Review && r.Author == k.task.Actor {
			late = false // GitHub dates comments of a review to about the time it was submitted
		}
		if late || r.Spot == k.o.Asked.Spot || !want(b, r) {
			continue
		}
		if one := (heard{r, readRemark(r.Body, b.me)}); !one.isNoise(b.me) {
			b.remarks = append(b.remarks, one)
		}
	}
	slices.SortStableFunc(b.remarks, func(x, y heard) int {
		return cmp.Or(x.At.Compare(y.At), cmp.Compare(x.ID, y.ID))
	})
	return b, nil
}

// isNoise reports whether a remark tells the agent nothing: it has no text besides a command and the name of a finding,
// or it is errand's note on a command or its comment with the state of an issue.
func (r heard) isNoise(me string) bool {
	if what := thread.WhatOf(r.Body); what != "" && strings.EqualFold(r.Author, me) {
		return what == thread.Note
	}
	bare := r.said.rest == "" || r.said.control != nil && r.said.argument && !strings.ContainsAny(r.said.rest, " \n")
	return r.said.All == "" || r.Author == me && strings.HasPrefix(r.Body, statusMark) || r.said.word != "" && bare
}

// asksMore reports whether a review has text besides its requests: each comment with a request is a separate task.
func (b batch) asksMore() bool {
	return b.asked.said.All != "" || slices.ContainsFunc(b.remarks, func(r heard) bool {
		return r.Review == b.asked.Review && !r.said.asks()
	})
}

// prompt returns the prompt of a request: its text, and the remarks it may refer to.
func (b batch) prompt(k conversation) string {
	where := map[thread.Place]string{
		thread.InConversation: "in the conversation of " + k.o.What(),
		thread.OnLine:         "on a line of the diff of " + k.o.What(),
		thread.InReview:       "in a review of " + k.o.What(),
		thread.InIssue:        "in " + k.o.What(),
	}[k.o.Asked.Place]
	return strings.TrimSpace(fmt.Sprintf("@%s asks you, %s:\n\n%s\n\n%s%s", k.task.Actor, where, k.task.Prompt,
		quotedHunk(b.asked.Remark), b.quote()))
}

// commandPrompt returns the prompt of a command with the text below it.
func (b batch) commandPrompt(k conversation, what string) string {
	return strings.TrimSpace(what + k.o.Added(k.task) + "\n\n" + b.quote())
}

// quote quotes the remarks, each in its own fence, or returns "". If there are too many, it drops the oldest.
func (b batch) quote() string {
	var blocks []string
	left, shown := maxBatch, map[int64]bool{0: true, b.asked.Thread: true}
	for _, r := range slices.Backward(b.remarks[max(0, len(b.remarks)-maxRemarks):]) {
		block := ""
		if !shown[r.Thread] {
			block, shown[r.Thread] = quotedHunk(r.Remark), true
		}
		block += untrusted.Quote("comment of "+speaker(r.Remark, b.me), untrusted.Cut(r.said.All, maxRemark))
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
func quotedHunk(r thread.Remark) string {
	if r.Hunk == "" {
		return ""
	}
	at := untrusted.Line(r.Path, 300)
	if r.Line > 0 {
		at += fmt.Sprintf(":%d", r.Line)
	}
	hunk := []rune(r.Hunk)
	return untrusted.Quote("the diff up to "+at, string(hunk[max(0, len(hunk)-maxHunk):]))
}
