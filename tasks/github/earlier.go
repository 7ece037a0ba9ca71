package github

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"

	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/internal/untrusted"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/review"
)

const (
	maxOthers = 30  // threads that others have begun, of which the agent is told
	maxOther  = 300 // characters of each
)

// earlier says to the agent what earlier reviews have found and what others have said already, and which head was reviewed last; empty when
// the pull request is new to us, and when a review from the beginning was asked for.
func (s *Source) earlier(ctx context.Context, gh *github.Client, t tasks.Task, o origin) (text, since string, err error) {
	l, err := s.ledger(ctx, o)
	if err != nil {
		return "", "", err
	}
	ours, others, err := s.threads(ctx, gh, o)
	if hub.Permanent(err) {
		s.log.Warn("brief without threads", "run", t.ID, "err", err)
	} else if err != nil {
		return "", "", s.later("read threads", err)
	}
	l.Observe(observed(ours)) // of this copy: the report writes it down
	text = recheck(l) + said(others, askedAt(t.ID))
	if l.Reviewed == "" {
		return text, "", nil
	}
	if o.Full || l.Reviewed == o.Head {
		return text + fmt.Sprintf("The pull request was reviewed before, at %s. Review all of it again.\n", hub.ShortSHA(l.Reviewed)), "", nil
	}
	text += fmt.Sprintf("The pull request was reviewed before, at %s. Look at the open findings first, then at what is new since then: in since.diff, if there is one. "+
		"What has not changed was reviewed already; report it only if what is new breaks it.\n", hub.ShortSHA(l.Reviewed))
	if l.Floor != "" {
		text += "Report nothing that is less grave than " + string(l.Floor) + ".\n"
	}
	return text, l.Reviewed, nil
}

// recheck lists the findings that are open and those that are settled between people.
func recheck(l review.Ledger) string {
	var b strings.Builder
	if open := l.Recheck(); len(open) > 0 {
		b.WriteString("These findings of earlier reviews are open. Look at each and say under earlier, by its id, what has become of it: " +
			"fixed, open, or outdated if what it was about is gone. Do not report them again.\n" + untrusted.Quote("open findings", list(open)))
	}
	if final := l.Final(); len(final) > 0 {
		b.WriteString("These were dismissed or answered by people. That is final: do not report them again, in whatever words.\n" +
			untrusted.Quote("settled findings", list(final)))
	}
	return b.String()
}

func list(all []review.Known) string {
	var b strings.Builder
	for _, k := range all {
		fmt.Fprintf(&b, "- id %s, %s, %s: %s\n", k.ID, k.Severity, located(k.Path, k.Line), untrusted.Plain(k.Claim))
	}
	return b.String()
}

// located is a line of a file, or the file alone where the line is not known any more.
func located(path string, at int) string {
	path = untrusted.Line(path, 300)
	if at == 0 {
		return path
	}
	return fmt.Sprintf("%s:%d", path, at)
}

// said lists what others have said at lines of the diff, as it was at a time.
func said(others []thread, at time.Time) string {
	var b strings.Builder
	for _, t := range others[max(0, len(others)-maxOthers):] {
		if c := t.Comments.Nodes[0]; !c.Created.After(at) && (c.Edited == nil || !c.Edited.After(at)) {
			fmt.Fprintf(&b, "- %s: %s\n", located(t.Path, t.Line), untrusted.Line(c.Body, maxOther))
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "Others have said this at lines of the diff. Do not repeat it.\n" + untrusted.Quote("comments of others", b.String())
}
