package slack

import (
	"context"
	"errors"
	"fmt"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
)

// take makes a task of an event, or the answer to what the thread's running task asks, if it is either. after, if not nil, is what is left
// to do once Slack has its answer. An error means that the event must come again.
func (s *Source) take(ctx context.Context, d *tasks.Desk, env envelope) (after func(context.Context), _ error) {
	ev, ok, err := env.event()
	if err != nil {
		s.log.Warn("event dropped", "err", err)
	}
	if !ok || !s.cfg.Access.admits(ev) {
		return nil, nil
	}
	us, err := s.us(ctx, env, ev)
	if err != nil {
		return nil, err
	}
	text, ok := cutMention(ev.Text, us.user)
	prompt := decode(text)
	if !ok || prompt == "" || ev.User == us.user {
		return nil, nil
	}
	o := origin{Team: env.TeamID, Channel: ev.Channel, TS: ev.TS, ThreadTS: ev.ThreadTS, User: ev.User}
	if err = s.check(ctx, us, ev); err == nil {
		after, err = s.ask(ctx, d, o, prompt)
	}
	return s.answered(ev, o, after, err)
}

// answered is what is left to do about a message, given what came of it. That it is refused is no reason for it to come again: whoever wrote
// it is told.
func (s *Source) answered(ev event, o origin, after func(context.Context), err error) (func(context.Context), error) {
	input, wrong := errors.AsType[*tasks.InputError](err)
	why, forbidden := errors.AsType[forbidden](err)
	switch {
	case !wrong && !forbidden:
		return after, err
	case ev.Type == messageEvent && ev.ChannelType != "im":
		return nil, nil // its app_mention says so; only direct messages have none
	case forbidden:
		return func(ctx context.Context) {
			if err := s.whisper(ctx, o, string(why)); err != nil && ctx.Err() == nil {
				s.log.Warn("refuse request", "channel", o.Channel, "err", err)
			}
		}, nil
	}
	return func(ctx context.Context) { s.tell(ctx, o, input.Sentence) }, nil
}

// ask gives the desk a request. An *tasks.InputError is for whoever asked.
func (s *Source) ask(ctx context.Context, d *tasks.Desk, o origin, said string) (after func(context.Context), _ error) {
	r, err := s.reader.read(said)
	if err != nil {
		return nil, err
	}
	thread, err := s.recall(ctx, d, o)
	if err != nil {
		return nil, err
	}
	t := s.task(o, r.prompt)
	candidates, err := s.settle(&t, r, thread)
	if err != nil {
		return nil, err
	}
	if len(candidates) > 0 {
		return nil, s.choose(t, candidates)
	}
	receipt, err := d.Submit(ctx, t)
	if err != nil || !receipt.New {
		return nil, err
	}
	sign := eyes
	if receipt.Heard {
		sign = check
	}
	return func(ctx context.Context) {
		s.react(ctx, o, sign)
		s.queue(ctx, t, receipt)
	}, nil
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
		Class: tasks.Interactive, Profile: agent.Write, Actor: o.User, Channel: o.Channel, Prompt: prompt, Origin: o.json(),
	}
}

// id is the ID of the task that a message becomes.
func (s *Source) id(o origin) string { return tasks.NewID(timeOf(o.TS), s.Name(), o.Channel) }
