package cloud

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// service gives tokens, each of which is the time at which it expires.
type service struct {
	life time.Duration
	err  error
}

func (s *service) get(context.Context) (time.Time, error) {
	if s.err != nil {
		return time.Time{}, s.err
	}
	return time.Now().Add(s.life), nil
}

// answered is an error with the status of an answer.
type answered int

func (a answered) Error() string { return fmt.Sprint("answered with ", int(a)) }

func lasting(s *service) func(context.Context) (time.Time, time.Duration, error) {
	return Lasting(s.get, func(token time.Time) time.Time { return token }, func(err error) int {
		a, _ := errors.AsType[answered](err)
		return int(a)
	})
}

// A token that cannot be renewed is used until it expires.
func TestFailedRenewal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &service{life: time.Minute}
		get := lasting(s)
		first, life, err := get(t.Context())
		if err != nil || life != 0 {
			t.Fatal(life, err)
		}
		s.err = errors.New("unreachable")
		time.Sleep(58 * time.Second) //nolint:forbidigo // in a bubble
		if token, life, err := get(t.Context()); err != nil || !token.Equal(first) || life != 2*time.Second {
			t.Errorf("%v for %v, %v", token, life, err)
		}
		time.Sleep(3 * time.Second) //nolint:forbidigo // in a bubble
		if token, _, err := get(t.Context()); err == nil {
			t.Errorf("%v is used after its end", token)
		}
	})
}

// A failure of the service that gives tokens is not one of the credential. Without an answer it may be, at first.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	gone, refuses := errors.New("connection refused"), answered(http.StatusBadRequest)
	fails, limits := answered(http.StatusServiceUnavailable), answered(http.StatusTooManyRequests)
	for name, c := range map[string]struct {
		had         bool
		err         error
		unreachable bool
	}{
		"gone after a token": {true, gone, true}, "fails after a token": {true, fails, true},
		"refuses after a token": {true, refuses, false}, "limits after a token": {true, limits, true},
		"gone at first": {false, gone, false}, "fails at first": {false, fails, true},
		"refuses at first": {false, refuses, false}, "limits at first": {false, limits, true},
	} {
		s := &service{life: -time.Minute}
		get := lasting(s)
		if c.had {
			if _, _, err := get(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		s.err = c.err
		if _, _, err := get(t.Context()); !errors.Is(err, c.err) || errors.Is(err, ErrUnreachable) != c.unreachable {
			t.Errorf("%s: %v", name, err)
		}
	}
}
