package store

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Credentials records which model credentials are throttled or refused.
type Credentials struct{ *conn }

// Bounds of the interval between two starts with a throttled credential, and the minimum time between two doublings.
const (
	leastInterval = time.Second
	mostInterval  = time.Minute
	slowedApart   = 5 * time.Second
)

// unthrottledStarts in a row, without a report of throttling, halve the interval between starts.
const unthrottledStarts = 4

// refusedFor is how long a credential counts as refused unless a run succeeds with it before.
const refusedFor = 24 * time.Hour

// Credential is a model credential with restricted starts. All workers that use the credential share this state under
// a name that they choose; the name is not a secret. The state is deleted ten minutes after its last confirmation or
// after Until.
type Credential struct {
	Name     string        `json:"name"`
	Until    time.Time     `json:"until,omitzero"`    // no run starts before
	Why      string        `json:"why,omitempty"`     // for display: the reason for Until
	Interval time.Duration `json:"interval"`          // between two starts; 0 = none
	Refused  string        `json:"refused,omitempty"` // for display: the model's last refusal; runs may still start
}

// InUse returns the credentials that at least one of the workers reports.
func InUse(list []Credential, workers []Worker) []Credential {
	return slices.DeleteFunc(slices.Clone(list), func(c Credential) bool {
		uses := func(w Worker) bool { return w.Credential == "" || w.Credential == c.Name }
		return len(workers) > 0 && !slices.ContainsFunc(workers, uses)
	})
}

// Held refuses to start a run with a credential.
type Held struct {
	At       time.Time     // when to try again, by this process' clock
	Interval time.Duration // between two starts from then on
	Why      string        // why the credential is held; empty if another run has just started
}

// Error implements error.
func (e *Held) Error() string {
	return fmt.Sprintf("credential is held until %s", e.At.UTC().Format(time.RFC3339Nano))
}

// Admit reports whether a run may start with a credential now, and returns [*Held] if not. An admitted run delays the
// next one by the credential's interval, even if the reply is lost. The interval halves with every fourth run that is
// admitted since the model last throttled one.
func (s *Credentials) Admit(ctx context.Context, credential string) error {
	_, err := s.run(ctx, "admit", credential, leastInterval.Microseconds(), unthrottledStarts, time.Now().UnixMicro())
	return wrapf(err, "admit a run")
}

// Hold prevents runs from starting with a credential until a time by workers' clocks; the latest such time counts.
// Afterwards runs start at least interval apart, until enough calls of [Credentials.Ease] and [Credentials.Admit].
func (s *Credentials) Hold(
	ctx context.Context, credential string, until time.Time, interval time.Duration, why string,
) error {
	_, err := s.run(ctx, "hold", credential, micros(until), interval.Microseconds(), why)
	return wrapf(err, "hold credential")
}

// Refuse records that the model rejects a credential, and why. It does not prevent starts. [Credentials.Ease] clears
// it.
func (s *Credentials) Refuse(ctx context.Context, credential, why string) error {
	_, err := s.run(ctx, "refuse", credential, why, refusedFor.Microseconds())
	return wrapf(err, "refuse credential")
}

// Slow records that the model throttles a run of this credential. The interval doubles, from 1 s up to 1 min, but at
// most once per 5 s, regardless of the number of reports.
func (s *Credentials) Slow(ctx context.Context, credential string) error {
	_, err := s.run(ctx, "slow", credential, leastInterval.Microseconds(), mostInterval.Microseconds(),
		slowedApart.Microseconds())
	return wrapf(err, "slow credential down")
}

// Ease records a successful run of this credential. It halves the interval, removes it below 1 s, and clears a refusal
// but not a hold.
func (s *Credentials) Ease(ctx context.Context, credential string) error {
	_, err := s.run(ctx, "ease", credential, leastInterval.Microseconds())
	return wrapf(err, "ease credential")
}

// List lists the credentials with restricted starts, in no particular order.
func (s *Credentials) List(ctx context.Context) ([]Credential, error) {
	names, err := s.redis.ZRange(ctx, s.key("credentials"), 0, -1).Result()
	if err != nil {
		return nil, fmt.Errorf("list credentials: %w", err)
	}
	var list []Credential
	for _, name := range names { // usually one or a few
		f, err := s.redis.HGetAll(ctx, s.key("credential", name)).Result()
		if err != nil {
			return nil, fmt.Errorf("read credential %s: %w", name, err)
		}
		if len(f) > 0 { // otherwise it has expired
			list = append(list, Credential{
				Name: name, Until: fromMicros(f["until"]), Why: f["why"],
				Interval: time.Duration(number(f["interval"])) * time.Microsecond, Refused: f["refused"],
			})
		}
	}
	return list, nil
}
