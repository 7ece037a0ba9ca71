package slack

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/errand-fleet/errand/tasks"
)

// What can be said to a thread instead of a request, and nothing else with it.
const (
	sayStop   = "stop"
	sayCancel = "cancel"
	sayStatus = "status"
	sayRetry  = "retry"
	sayHelp   = "help"
)

// help is what can be said to us. The options are those of cutOptions.
const help = "Mention me with what you want done; I answer in the thread, and go on with what is said there. Begin with options if you like: " +
	"[repo=owner/name branch=… model=… effort=… budget=… timeout=… plan]. In the thread, say stop, status or retry, or put ❌ on a request to stop it. " +
	"While a request waits you may edit or delete it."

// What is said of controls, besides what is said of buttons.
const (
	inThread  = "Say that in the thread of what you asked me for."
	nothing   = "Nothing is under way in this thread."
	stopping  = "I am stopping this. It may take some seconds."
	repeating = "I am trying this again."
	underWay  = "This is under way already."
)

// control reads a message that is a control and nothing else.
func control(text string) (word string, ok bool) {
	word = strings.ToLower(strings.TrimRight(strings.TrimSpace(text), ".! "))
	return word, slices.Contains([]string{sayStop, sayCancel, sayStatus, sayRetry, sayHelp}, word)
}

// obey does what a control says and gives the answer to it. It changes nothing when it is done again: an event may come late, and often.
func (s *Source) obey(ctx context.Context, d *tasks.Desk, o origin, word string, thread tasks.Thread) (string, error) {
	switch {
	case word == sayHelp:
		return help, nil
	case o.ThreadTS == "":
		return inThread, nil
	case thread.Latest == "":
		return nothing, nil
	case word == sayStatus:
		return s.tellStatus(ctx, d, o, thread)
	case word == sayRetry:
		return s.retry(ctx, d, o, thread)
	}
	return s.stopAll(ctx, d, o)
}

// stopAll stops what is under way in a thread and was asked for before.
func (s *Source) stopAll(ctx context.Context, d *tasks.Desk, o origin) (string, error) {
	stopped, spared, err := d.StopAll(ctx, s.threadOf(o), s.id(o), s.nameOf(ctx, o.User), func(t tasks.Task) bool { return s.governs(o.User, t) })
	switch {
	case err != nil:
		return "", err
	case stopped > 0:
		return stopping, nil
	case spared > 0:
		return notYours, nil
	}
	return nothing, nil
}

// retry lets a thread's latest request run again.
func (s *Source) retry(ctx context.Context, d *tasks.Desk, o origin, thread tasks.Thread) (string, error) {
	st, err := d.Latest(ctx, thread)
	switch {
	case errors.Is(err, tasks.ErrNotFound):
		return unknown, nil
	case err != nil:
		return "", err
	case !s.governs(o.User, st.Task):
		return notYours, nil
	}
	if err = d.Repeat(ctx, st, timeOf(o.TS)); errors.Is(err, tasks.ErrNotEnded) {
		return underWay, nil
	}
	return repeating, err
}

// tellStatus says what is under way in a thread, or how its latest request has ended.
func (s *Source) tellStatus(ctx context.Context, d *tasks.Desk, o origin, thread tasks.Thread) (string, error) {
	open, err := d.Open(ctx, s.threadOf(o))
	if err != nil {
		return "", err
	}
	var lines []string
	for _, st := range open {
		if st.State == "running" {
			if st, err = d.Status(ctx, st.Task.ID); err != nil {
				return "", err
			}
		}
		lines = append(lines, s.standing(st))
	}
	if len(lines) > 0 {
		return strings.Join(lines, "\n"), nil
	}
	st, err := d.Latest(ctx, thread)
	if errors.Is(err, tasks.ErrNotFound) {
		return nothing, nil
	}
	if err != nil {
		return "", err
	}
	return s.standing(st), nil
}

// standing is how one request stands.
func (s *Source) standing(st tasks.Status) string {
	title := "“" + line(st.Task.Title(), maxAction) + "”"
	switch {
	case st.Ending != nil:
		return dots(fmt.Sprintf("%s has ended: %s", title, strings.ReplaceAll(string(st.Ending.Kind), "_", " ")), st.Ending.Footer())
	case st.State == "running" && len(st.Questions) > 0:
		return title + " waits for your answer."
	case st.State == "running" && st.Why == "":
		return fmt.Sprintf("%s is at work for %s.", title, tasks.Lasted(s.cfg.Now().Sub(st.Started)))
	case st.Why != "":
		return fmt.Sprintf("%s waits: %s.", title, st.Why)
	}
	return title + " is taken into account by what runs in this thread."
}

// nameOf is a user as people know him.
func (s *Source) nameOf(ctx context.Context, user string) string {
	if one, ok := s.cfg.People.Find(s.Name(), user); ok {
		return "@" + one.Name
	}
	if u, err := s.people.get(ctx, user); err == nil && u.Name != "" {
		return "@" + u.Name
	}
	return "@" + user
}
