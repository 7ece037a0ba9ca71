package store

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Bounds of the time between two starts with a credential whose runs the model throttles, and how far apart it is doubled.
const (
	leastInterval = time.Second
	mostInterval  = time.Minute
	slowedApart   = 5 * time.Second
)

// refusedFor is how long a credential counts as refused unless a run succeeds with it before.
const refusedFor = 24 * time.Hour

// Credential is one whose runs do not start freely. All workers that use it share what is known of it; its name is theirs, and no secret.
// What nobody confirms is forgotten after ten minutes, or that long after Until.
type Credential struct {
	Name     string        `json:"name"`
	Until    time.Time     `json:"until,omitzero"`    // no run starts before
	Why      string        `json:"why,omitempty"`     // for people: the reason for Until
	Interval time.Duration `json:"interval"`          // between two starts; 0 = none
	Refused  string        `json:"refused,omitempty"` // for people: what the model said when it last refused the credential; runs start all the same
}

// InUse leaves out the credentials that no worker uses any more, as far as the workers tell.
func InUse(list []Credential, workers []Worker) []Credential {
	return slices.DeleteFunc(slices.Clone(list), func(c Credential) bool {
		uses := func(w Worker) bool { return w.Credential == "" || w.Credential == c.Name }
		return len(workers) > 0 && !slices.ContainsFunc(workers, uses)
	})
}

// Held is the refusal to start a run with a credential.
type Held struct {
	At       time.Time     // when to ask again, by Redis' clock
	Interval time.Duration // between two starts, from then on
	Why      string        // why the credential is held; empty: only another run has just started
}

// Error implements error.
func (e *Held) Error() string {
	return fmt.Sprintf("credential is held until %s", e.At.UTC().Format(time.RFC3339Nano))
}

// Admit asks whether a run may start with a credential now; [*Held] when not. One that may puts off the next by the credential's interval.
// An answer that gets lost costs an interval.
func (s *Credentials) Admit(ctx context.Context, credential string) error {
	if _, err := s.run(ctx, "admit", credential); err != nil {
		return fmt.Errorf("admit a run: %w", err)
	}
	return nil
}

// Hold keeps runs from starting with a credential until then, by Redis' clock; the latest time counts. Afterwards they start at least
// interval apart, until [Credentials.Ease] has said often enough that all is well.
func (s *Credentials) Hold(ctx context.Context, credential string, until time.Time, interval time.Duration, why string) error {
	if _, err := s.run(ctx, "hold", credential, micros(until), interval.Microseconds(), why); err != nil {
		return fmt.Errorf("hold credential: %w", err)
	}
	return nil
}

// Refuse says that the model does not take a credential, and why. It keeps no run from starting: a success, told to [Credentials.Ease], ends it.
func (s *Credentials) Refuse(ctx context.Context, credential, why string) error {
	if _, err := s.run(ctx, "refuse", credential, why, refusedFor.Microseconds()); err != nil {
		return fmt.Errorf("refuse credential: %w", err)
	}
	return nil
}

// Slow says that the model throttles a run of this credential: the interval doubles, from 1 s to 1 min, but only once in 5 s, however many
// runs say so.
func (s *Credentials) Slow(ctx context.Context, credential string) error {
	_, err := s.run(ctx, "slow", credential, leastInterval.Microseconds(), mostInterval.Microseconds(), slowedApart.Microseconds())
	if err != nil {
		return fmt.Errorf("slow credential down: %w", err)
	}
	return nil
}

// Ease says that a run of this credential went well: the interval halves, and is gone below 1 s. It does not end a hold, but a refusal.
func (s *Credentials) Ease(ctx context.Context, credential string) error {
	if _, err := s.run(ctx, "ease", credential, leastInterval.Microseconds()); err != nil {
		return fmt.Errorf("ease credential: %w", err)
	}
	return nil
}

// List lists those whose runs do not start freely, in no particular order.
func (s *Credentials) List(ctx context.Context) ([]Credential, error) {
	names, err := s.redis.ZRange(ctx, s.key.credentials(), 0, -1).Result()
	if err != nil {
		return nil, fmt.Errorf("list credentials: %w", err)
	}
	var list []Credential
	for _, name := range names { // a fleet has one, or a few
		f, err := s.redis.HGetAll(ctx, s.key.credential(name)).Result()
		if err != nil {
			return nil, fmt.Errorf("read credential %s: %w", name, err)
		}
		if len(f) > 0 { // else its time has run out
			list = append(list, Credential{
				Name: name, Until: fromMicros(f["until"]), Why: f["why"], Interval: time.Duration(number(f["interval"])) * time.Microsecond,
				Refused: f["refused"],
			})
		}
	}
	return list, nil
}
