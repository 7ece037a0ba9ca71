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

func tokens(s *service) *Tokens[time.Time] {
	return NewTokens(s.get, func(token time.Time) time.Time { return token }, func(err error) int {
		a, _ := errors.AsType[answered](err)
		return int(a)
	})
}

// A token that cannot be renewed is used until it expires.
func TestFailedRenewal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &service{life: time.Minute}
		all := tokens(s)
		first, err := all.Current(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s.err = errors.New("unreachable")
		time.Sleep(58 * time.Second) //nolint:forbidigo // in a bubble
		if token, err := all.Current(t.Context()); err != nil || !token.Equal(first) {
			t.Errorf("%v, %v", token, err)
		}
		time.Sleep(3 * time.Second) //nolint:forbidigo // in a bubble
		if token, err := all.Current(t.Context()); err == nil {
			t.Errorf("%v is used after its end", token)
		}
		s.err = nil
		time.Sleep(5 * time.Second) //nolint:forbidigo // in a bubble
		if token, err := all.Current(t.Context()); err != nil || token.Equal(first) {
			t.Errorf("%v, %v after the failure", token, err)
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
		synctest.Test(t, func(t *testing.T) {
			s := &service{life: -time.Minute}
			all := tokens(s)
			if c.had {
				if _, err := all.Current(t.Context()); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute) //nolint:forbidigo // in a bubble
			}
			s.err = c.err
			_, err := all.Current(t.Context())
			if !errors.Is(err, c.err) || errors.Is(err, ErrUnreachable) != c.unreachable {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}
