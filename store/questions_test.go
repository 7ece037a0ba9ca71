package store

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestQuestionIsAnsweredOnce(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		id := h.submit(s, 1)
		c := h.claim(s, id)
		question := json.RawMessage(`"red or blue?"`)
		if _, err := s.Questions.Answer(ctx, id, "k", json.RawMessage(`"red"`), ""); !errors.Is(err, ErrNotFound) {
			h.Errorf("an answer to nothing = %v", err)
		}
		if answer := must(c.Ask(ctx, "k", question)); answer != nil {
			h.Errorf("already answered: %s", answer)
		}
		got := make(chan string, 1)
		go func() {
			answer, err := c.Await(ctx, "k")
			got <- string(answer) + errorText(err)
		}()
		for _, answer := range []string{`"red"`, `"blue"`} {
			if stands := must(s.Questions.Answer(ctx, id, "k",
				json.RawMessage(answer), "")); string(stands) != `"red"` {
				h.Errorf("%s: it stands at %s", answer, stands)
			}
		}
		if answer := <-got; answer != `"red"` {
			h.Errorf("awaited %s", answer)
		}
		if diff := cmp.Diff([]Question{{
			Key: "k", Body: question, Answer: json.RawMessage(`"red"`), Fence: c.Record().Fence,
		}}, must(s.Questions.List(ctx, id))); diff != "" {
			h.Error(diff)
		}
		if answer := must(c.Ask(ctx, "k", question)); string(answer) != `"red"` {
			h.Errorf("asked again: %s", answer)
		}
	})
}

// Questions and answers belong to the task, not to one of its runs, but only its holder can ask.
func TestQuestionOutlivesItsRun(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		id := h.submit(s, 1)
		first := h.claim(s, id)
		_ = must(first.Ask(ctx, "k", json.RawMessage(`1`)))
		if !must(first.First(ctx, "u")) || must(first.First(ctx, "u")) {
			h.Error("said twice, or not at all")
		}
		if _, err := s.Questions.FirstWhileWaiting(ctx, id, "w"); !errors.Is(err, ErrStale) {
			h.Errorf("spoke for a task that runs: %v", err)
		}
		h.ok(first.Return(ctx, Wait{}))
		if must(s.Questions.FirstWhileWaiting(ctx, id, "u")) || !must(s.Questions.FirstWhileWaiting(ctx, id, "w")) ||
			must(s.Questions.FirstWhileWaiting(ctx, id, "w")) {
			h.Error("said twice while it waits, or not at all")
		}
		if h.ok(s.Questions.Unsay(ctx, id, "w")); !must(s.Questions.FirstWhileWaiting(ctx, id, "w")) {
			h.Error("what was not said is marked as said")
		}
		if _, err := first.Ask(ctx, "l", json.RawMessage(`1`)); !errors.Is(err, ErrStale) {
			h.Errorf("a stale holder asked: %v", err)
		}
		if _, err := first.First(ctx, "v"); !errors.Is(err, ErrStale) {
			h.Errorf("a stale holder spoke: %v", err)
		}
		_ = must(s.Questions.Answer(ctx, id, "k", json.RawMessage(`2`), ""))
		second := h.claim(s, id)
		if answer := must(second.Ask(ctx, "k", json.RawMessage(`1`))); string(answer) != `2` {
			h.Errorf("the answer is %s", answer)
		}
		if must(second.First(ctx, "u")) {
			h.Error("the next run says it again")
		}
		h.ok(second.End(ctx, json.RawMessage(`{}`)))
		if _, err := s.Questions.Answer(ctx, id, "k", json.RawMessage(`3`), ""); !errors.Is(err, ErrEnded) {
			h.Errorf("an answer after the end = %v", err)
		}
		_ = must(s.Retry(ctx, id, nil))
		if left := must(s.Questions.List(ctx, id)); len(left) != 0 {
			h.Errorf("a task that is tried again still knows %v", left)
		}
	})
}

// A message is an answer or a task, however often and wherever it arrives.
func TestMessageIsAnAnswerOrATask(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		reply := func(rec Record, mode ReplyMode) Record {
			rec.Reply = mode
			return rec
		}
		id := h.submit(s, 1)
		message, other := task(2), task(3)
		if _, created, err := s.Submit(ctx, reply(task(4), MayReply)); err != nil || !created {
			h.Errorf("nothing runs: created %t, %v", created, err)
		}
		if _, _, err := s.Submit(ctx, reply(task(6), OnlyReply)); !errors.Is(err, ErrNoQuestion) {
			h.Errorf("an answer to nothing: %v", err)
		}
		c := h.claim(s, id)
		if _, created, err := s.Submit(ctx, reply(task(5), MayReply)); err != nil || !created {
			h.Errorf("nothing was asked: created %t, %v", created, err)
		}
		_ = must(c.Ask(ctx, "k", json.RawMessage(`1`)))
		_, _, err := s.Submit(ctx, reply(message, MayReply))
		if open, ok := errors.AsType[*OpenQuestion](err); !ok || open.ID != id {
			h.Fatalf("submit: %v", err)
		}
		_, _, err = s.Submit(ctx, reply(message, OnlyReply))
		if open, ok := errors.AsType[*OpenQuestion](err); !ok || open.ID != id {
			h.Fatalf("submit: %v", err)
		}
		if stands := must(s.Questions.Answer(ctx, id, "k",
			json.RawMessage(`"a"`), message.ID)); string(stands) != `"a"` {
			h.Errorf("it stands at %s", stands)
		}
		_ = must(c.Ask(ctx, "l", json.RawMessage(`2`)))
		for _, key := range []string{"k", "l"} {
			if _, err := s.Questions.Answer(ctx, id, key,
				json.RawMessage(`"a"`), message.ID); !errors.Is(err, ErrSpent) {
				h.Errorf("the same message answers %s as well: %v", key, err)
			}
		}
		_ = must(s.Questions.Answer(ctx, id, "k", json.RawMessage(`"b"`), other.ID))
		// A list of all known tasks should include it.
		if left := h.rdb.TTL(ctx, "errand:spent:"+message.ID).Val(); left < s.cfg.Retention-time.Minute {
			h.Errorf("forgotten after %s", left)
		}
		h.ok(c.End(ctx, json.RawMessage(`{}`)))
		if _, _, err := s.Submit(ctx, reply(message, MayReply)); !errors.Is(err, ErrSpent) {
			h.Errorf("the answer comes again: %v", err)
		}
		if _, created, err := s.Submit(ctx, other); err != nil || !created {
			h.Errorf("too late for an answer: created %t, %v", created, err)
		}
	})
}

func TestAwaitEndsWithItsContext(t *testing.T) {
	onBoth(t, func(h *harness) {
		s := h.store(Config{})
		c := h.claim(s, h.submit(s, 1))
		_ = must(c.Ask(h.Context(), "k", json.RawMessage(`1`)))
		cause := errors.New("enough")
		ctx, cancel := context.WithCancelCause(h.Context())
		cancel(cause)
		if _, err := c.Await(ctx, "k"); !errors.Is(err, cause) {
			h.Errorf("err = %v", err)
		}
	})
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
