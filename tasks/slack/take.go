package slack

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/intake"
)

// take makes a task of an event, or does what else it asks for: it may be the answer to what the thread's running task asks, or a word to
// the thread. after, if not nil, is what is left to do once Slack has its answer. An error means that the event must come again.
func (s *Source) take(ctx context.Context, d *tasks.Desk, env envelope) (after func(context.Context), _ error) {
	ev, odd := env.event()
	switch {
	case ev.Type == reactionAdded:
		return s.takeReaction(ctx, d, env)
	case ev.Type == messageEvent && (ev.SubType == changed || ev.SubType == deleted):
		return s.takeChange(ctx, d, env)
	}
	ok, err := env.message(ev, odd)
	if err != nil {
		s.log.Warn("event dropped", "err", err)
	}
	if !ok || !s.cfg.Access.admits(ev) {
		return nil, nil
	}
	return s.hear(ctx, d, env, ev)
}

// hear takes a message that somebody has written.
func (s *Source) hear(ctx context.Context, d *tasks.Desk, env envelope, ev event) (after func(context.Context), _ error) {
	us, err := s.us(ctx, env, ev)
	if err != nil {
		return nil, err
	}
	text, tagged := cutMention(ev.Text, us.user)
	untagged := !tagged && !ev.direct()
	said := decode(text)
	if said == "" && len(ev.Files) > 0 {
		said = onlyFiles
	}
	if said == "" || ev.User == us.user || untagged && !ev.follows(text) {
		return nil, nil
	}
	o := origin{Team: env.TeamID, Channel: ev.Channel, TS: ev.TS, ThreadTS: ev.ThreadTS, User: ev.User}
	thread, err := s.recall(ctx, d, o)
	if err != nil || untagged && thread.Latest == "" {
		return nil, err // people among themselves
	}
	// A mention in a channel is two events: what it comes to is said about one of them.
	speaks := untagged || ev.direct() || ev.Type == appMention
	if err := s.check(ctx, us, ev); err != nil {
		return s.refuse(o, speaks && !untagged, err)
	}
	var note string
	word, isControl := intake.ParseWord(said)
	if !isControl {
		if err := s.pace(ctx, ev, o, speaks); err != nil {
			return s.refuse(o, true, err)
		}
	}
	repo, isListing := listing(said)
	switch {
	case isControl && !speaks: // done for both, the second one would find it done
	case isControl:
		note, err = s.obey(ctx, d, o, word, thread)
	case isListing:
		after, err = s.list(o, repo, thread, speaks)
	default:
		after, err = s.ask(ctx, d, message{o, said, ev.Files}, thread)
	}
	if input, ok := errors.AsType[*tasks.InputError](err); ok {
		note, err = input.Sentence, nil
	}
	if note != "" && speaks {
		after = func(ctx context.Context) { s.tell(ctx, o, note) }
	}
	return after, err
}

// refuse tells somebody that he is not served, if he is to be told at all. Any other error means that the event must come again.
func (s *Source) refuse(o origin, aloud bool, err error) (after func(context.Context), _ error) {
	why, ok := errors.AsType[forbidden](err)
	switch {
	case !ok:
		return nil, err
	case !aloud || why == "":
		return nil, nil
	}
	return func(ctx context.Context) {
		if err := s.whisper(ctx, o, string(why)); err != nil && ctx.Err() == nil {
			s.log.Warn("refuse request", "channel", o.Channel, "err", err)
		}
	}, nil
}

// message is what somebody has said to us.
type message struct {
	origin origin
	text   string // Markdown, without our name
	files  attachments
}

// ask gives the desk a request. thread is what its thread goes by. An *tasks.InputError is for whoever asked.
func (s *Source) ask(ctx context.Context, d *tasks.Desk, m message, thread tasks.Thread) (after func(context.Context), _ error) {
	t, err := s.request(ctx, m, thread)
	if open, ok := errors.AsType[*undecided](err); ok {
		return s.offer(ctx, t, open)
	}
	if err != nil {
		return nil, err
	}
	receipt, err := d.Submit(ctx, t)
	if err == nil && receipt.Answered && len(m.files) > 0 {
		_, err = d.Submit(ctx, besides(t))
	}
	if err != nil || !receipt.New {
		return nil, err
	}
	sign := eyes
	if receipt.Answered {
		sign = check
	}
	return func(ctx context.Context) {
		s.react(ctx, m.origin, sign)
		s.queue(ctx, t, receipt)
		s.prefer(ctx, t)
	}, nil
}

// besides is a task that brings the agent the files of a message which has been the answer to a question: that is text alone.
func besides(t tasks.Task) tasks.Task {
	t.ID, t.Prompt = t.ID+"-files", "Here is what I have sent along with my answer."
	return t
}

// request is the task that a message asks for. An *tasks.InputError says what it lacks.
func (s *Source) request(ctx context.Context, m message, thread tasks.Thread) (tasks.Task, error) {
	r, err := s.reader.read(m.text)
	if err != nil {
		return tasks.Task{}, err
	}
	if thread, err = s.noticed(ctx, m.origin, thread); err != nil {
		return tasks.Task{}, err
	}
	t, b := s.task(m.origin, r.prompt), brought{Files: m.files}
	candidates, err := s.settle(&t, r, thread)
	if err == nil && r.pull.number > 0 {
		candidates, err = nil, s.pin(ctx, &t, &b, r)
	}
	b.Anew = thread.Latest != "" && t.Ref != "" && (t.Ref != thread.Ref || !strings.EqualFold(t.Repo, thread.Repo))
	t.Origin = m.address(b)
	if err == nil && len(candidates) > 0 {
		err = &undecided{candidates: candidates, told: &tasks.InputError{Sentence: undecidedSentence(candidates)}}
	}
	return t, err
}

// recall is what the thread of a message goes by; zero where it is the first there. A message outside any thread begins one, and nothing
// has to be looked up.
func (s *Source) recall(ctx context.Context, d *tasks.Desk, o origin) (tasks.Thread, error) {
	if o.ThreadTS == "" {
		return tasks.Thread{}, nil
	}
	thread, err := d.Thread(ctx, s.threadOf(o))
	if errors.Is(err, tasks.ErrNotFound) {
		return tasks.Thread{}, nil
	}
	return thread, err
}

// threadOf is the name of a message's thread.
func (s *Source) threadOf(o origin) string {
	return fmt.Sprintf("%s/%s/%s/%s", s.Name(), o.Team, o.Channel, o.root())
}

// task is what a message asks for, wherever that is to be done.
func (s *Source) task(o origin, prompt string) tasks.Task {
	return tasks.Task{
		ID: s.id(o), Source: s.Name(), Kind: "mention", Thread: s.threadOf(o),
		Class: tasks.Interactive, Profile: agent.Write, Actor: o.User, Channel: o.Channel, Prompt: prompt, Origin: o.json(), Reply: new(tasks.Reply),
	}
}

// id is the ID of the task that a message becomes.
func (s *Source) id(o origin) string { return tasks.NewID(timeOf(o.TS), s.Name(), o.Channel) }
