package slackfake_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/errand-fleet/errand/internal/await"
	"github.com/errand-fleet/errand/internal/fake/slackfake"
	"github.com/slack-go/slack"
)

const postMessage = "chat.postMessage"

func TestRateLimit(t *testing.T) {
	t.Parallel()
	s, c := start(t, slackfake.Config{})
	s.Fail(postMessage, slackfake.Failure{Times: 2, RetryAfter: 7})
	for range 2 {
		_, _, err := c.PostMessageContext(t.Context(), channel, slack.MsgOptionText("x", false))
		limited, ok := errors.AsType[*slack.RateLimitedError](err)
		if !ok || limited.RetryAfter != 7*time.Second {
			t.Errorf("error %v, want a rate limit of 7 s", err)
		}
	}
	post(t, c, slack.MsgOptionText("at last", false))
	equal(t, "messages", texts(s.Messages(channel, "")), []string{"at last"})
	calls := s.Calls(postMessage)
	equal(t, "calls", []any{len(calls), calls[0].Status, calls[0].Error, calls[2].Status},
		[]any{3, 429, "ratelimited", 200})
}

func TestRateLimitWithoutADelay(t *testing.T) {
	t.Parallel()
	s, c := start(t, slackfake.Config{})
	s.Fail("auth.test", slackfake.Failure{Status: http.StatusTooManyRequests})
	_, err := c.AuthTestContext(t.Context())
	if limited, ok := errors.AsType[*slack.RateLimitedError](err); !ok || limited.RetryAfter != 0 {
		t.Errorf("error %v, want a rate limit of 0 s", err)
	}
}

func TestFailuresQueueUpPerMethod(t *testing.T) {
	t.Parallel()
	s, c := start(t, slackfake.Config{})
	s.Fail("auth.test", slackfake.Failure{Status: 503})
	s.Fail("auth.test", slackfake.Failure{Error: "internal_error"})
	post(t, c, slack.MsgOptionText("another method", false))
	_, err := c.AuthTestContext(t.Context())
	if code, ok := errors.AsType[slack.StatusCodeError](err); !ok || code.Code != 503 {
		t.Errorf("error %v, want 503", err)
	}
	_, err = c.AuthTestContext(t.Context())
	want(t, "second", err, "internal_error")
	if _, err = c.AuthTestContext(t.Context()); err != nil {
		t.Errorf("third: %v", err)
	}
}

func TestHealEndsAnEndlessFailure(t *testing.T) {
	t.Parallel()
	s, c := start(t, slackfake.Config{})
	s.Fail("auth.test", slackfake.Failure{Times: -1, Error: "fatal_error"})
	for range 3 {
		_, err := c.AuthTestContext(t.Context())
		want(t, "failing", err, "fatal_error")
	}
	s.Heal("auth.test")
	if _, err := c.AuthTestContext(t.Context()); err != nil {
		t.Errorf("healed: %v", err)
	}
}

func TestLostCallAndLostAnswer(t *testing.T) {
	t.Parallel()
	s, c := start(t, slackfake.Config{})
	for _, f := range []slackfake.Failure{{}, {After: true}, {After: true, Status: 500}} {
		s.Fail(postMessage, f)
	}
	for _, text := range []string{"lost call", "lost answer", "lied about"} {
		if _, _, err := c.PostMessageContext(t.Context(), channel, slack.MsgOptionText(text, false)); err == nil {
			t.Errorf("%s: no error", text)
		}
	}
	equal(t, "messages", texts(s.Messages(channel, "")), []string{"lost answer", "lied about"})
	var statuses []int
	for _, call := range s.Calls(postMessage) {
		statuses = append(statuses, call.Status)
	}
	equal(t, "statuses", statuses, []int{0, 0, 500})
}

func TestHeldCall(t *testing.T) {
	t.Parallel()
	s, c := start(t, slackfake.Config{})
	hold := make(chan struct{})
	s.Fail(postMessage, slackfake.Failure{Hold: hold})
	done := make(chan error)
	go func() {
		_, _, err := c.PostMessageContext(t.Context(), channel, slack.MsgOptionText("slow", false))
		done <- err
	}()
	arrived := func(s *slackfake.Server) bool { return len(s.Calls(postMessage)) == 1 }
	if err := s.Wait(t.Context(), arrived); err != nil {
		t.Fatal(err)
	}
	equal(t, "while held", texts(s.Messages(channel, "")), []string(nil))
	post(t, c, slack.MsgOptionText("overtakes", false))
	close(hold)
	if err := <-done; err != nil {
		t.Errorf("held call: %v", err)
	}
	equal(t, "in the end", texts(s.Messages(channel, "")), []string{"overtakes", "slow"})
}

func TestHeldCallWhoseClientLeavesIsNotPerformed(t *testing.T) {
	t.Parallel()
	s, c := start(t, slackfake.Config{})
	hold := make(chan struct{})
	s.Fail(postMessage, slackfake.Failure{Hold: hold})
	ctx, leave := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, _, err := c.PostMessageContext(ctx, channel, slack.MsgOptionText("slow", false))
		done <- err
	}()
	if err := s.Wait(t.Context(), func(s *slackfake.Server) bool {
		return len(s.Calls(postMessage)) == 1
	}); err != nil {
		t.Fatal(err)
	}
	leave()
	if err := <-done; err == nil {
		t.Error("the call was answered although its client had left")
	}
	abandoned := func(s *slackfake.Server) bool { return s.Calls(postMessage)[0].Error == slackfake.Abandoned }
	if err := s.Wait(t.Context(), abandoned); err != nil {
		t.Fatal(err)
	}
	close(hold)
	equal(t, "messages", texts(s.Messages(channel, "")), []string(nil))
}

func TestWait(t *testing.T) {
	t.Parallel()
	s, c := start(t, slackfake.Config{})
	looked := make(chan struct{}, 100)
	done := make(chan error)
	go func() {
		done <- s.Wait(t.Context(), func(s *slackfake.Server) bool {
			looked <- struct{}{}
			return len(s.Messages(channel, "")) == 2
		})
	}()
	<-looked // it has looked in vain: from here on only changes can wake it
	post(t, c, slack.MsgOptionText("one", false))
	<-looked
	post(t, c, slack.MsgOptionText("two", false))
	if err := <-done; err != nil {
		t.Errorf("wait: %v", err)
	}
}

// wakes fails the test if a change does not wake a Wait that has looked before it.
func wakes(t *testing.T, s *slackfake.Server, what string, change func()) {
	t.Helper()
	ctx := await.Context(t)
	looks := 0
	looked := make(chan struct{}, 1)
	done := make(chan error)
	go func() {
		done <- s.Wait(ctx, func(*slackfake.Server) bool {
			looks++
			if looks == 1 {
				looked <- struct{}{}
			}
			return looks == 2
		})
	}()
	<-looked
	change()
	if err := <-done; err != nil {
		t.Errorf("%s wakes no waiter", what)
	}
}

func TestEveryChangeWakes(t *testing.T) {
	t.Parallel()
	s, c := start(t, slackfake.Config{})
	listen(t, s)
	var ts string
	wakes(t, s, "seed", func() { ts = seed(t, s, slackfake.Message{Text: "x"}) })
	wakes(t, s, "post", func() { ts = post(t, c, slack.MsgOptionText("x", false)) })
	wakes(t, s, "reaction", func() {
		_ = c.AddReactionContext(t.Context(), "eyes", slack.NewRefToMessage(channel, ts))
	})
	wakes(t, s, "update", func() {
		_, _, _, _ = c.UpdateMessageContext(t.Context(), channel, ts, slack.MsgOptionText("y", false))
	})
	wakes(t, s, "refused call", func() { _, _, _ = c.PostMessageContext(t.Context(), channel) })
	wakes(t, s, "event", func() { _, _ = s.Send(t.Context(), s.Envelope(nil), slackfake.SendOptions{}) })

	s.Fail("auth.test", slackfake.Failure{Hold: make(chan struct{})})
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan struct{})
	wakes(t, s, "held call", func() {
		go func() {
			defer close(left)
			_, _ = c.AuthTestContext(ctx)
		}()
	})
	wakes(t, s, "abandoned call", leave)
	<-left
}

func TestWaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	s, _ := start(t, slackfake.Config{})
	bored := errors.New("bored")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(bored)
	if err := s.Wait(ctx, func(*slackfake.Server) bool { return false }); !errors.Is(err, bored) {
		t.Errorf("error %v, want the cause", err)
	}
	if err := s.Wait(ctx, func(*slackfake.Server) bool { return true }); err != nil {
		t.Errorf("what holds already needs no time: %v", err)
	}
}
