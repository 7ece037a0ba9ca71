package view

import (
	"context"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

// probeLimit is how long a page or a probe waits for Redis.
const probeLimit = 2 * time.Second

// Await asks Redis and gives up after two seconds, or when ctx ends. A Redis client may notice the end of its context
// only between attempts, so the call is left behind; it ends by the client's own timeouts.
func Await[T any](ctx context.Context, ask func(context.Context) (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	done := make(chan result, 1)
	go func() {
		value, err := ask(ctx)
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var zero T
		return zero, ctx.Err()
	}
}

// Snapshot is the fleet at one moment, as far as every page shows it.
type Snapshot struct {
	Workers     []store.Worker
	Queues      []tasks.Depth
	Spent       float64 // today, in US dollars
	Counts      store.Counts
	Credentials []store.Credential // credentials in use that are held, refused or throttled
}

// Snapshot reads the fleet. Its cost does not depend on the number of tasks.
func (v *Reader) Snapshot(ctx context.Context) (Snapshot, error) { return Await(ctx, v.snapshot) }

func (v *Reader) snapshot(ctx context.Context) (s Snapshot, err error) {
	if s.Workers, err = v.Store.Workers.List(ctx); err != nil {
		return s, err
	}
	if s.Queues, err = v.Desk.Depths(ctx); err != nil {
		return s, err
	}
	credentials, err := v.Store.Credentials.List(ctx)
	if err != nil {
		return s, err
	}
	s.Credentials = store.InUse(credentials, s.Workers)
	if s.Counts, err = v.Store.Counts(ctx); err != nil {
		return s, err
	}
	s.Spent, err = v.Store.Costs.Spent(ctx, store.Fleet)
	return s, err
}

// Trouble says in sentences why a task submitted now would not run, or would fail, and how to fix it. It returns "" if
// the task would run.
func (s *Snapshot) Trouble(now time.Time) string {
	what, remedy := s.problem(now)
	if what == "" {
		return ""
	}
	return Sentences(what, remedy)
}

// problem returns why a task submitted now would not run, or would fail, and how to fix it.
func (s *Snapshot) problem(now time.Time) (what, remedy string) {
	if what, remedy = tasks.Unable(s.Workers); what != "" {
		return what, remedy
	}
	return credentialProblem(s.Workers, s.Credentials, now), ""
}

// credentialProblem returns why no worker can use its model credential now: each is refused, or held until a time. It
// returns "" if a worker has a usable credential. A worker that does not name its credential may have any of them.
func credentialProblem(workers []store.Worker, credentials []store.Credential, now time.Time) string {
	var unusable []store.Credential
	for _, w := range workers {
		if !tasks.Able(w) {
			continue
		}
		i := slices.IndexFunc(credentials, func(c store.Credential) bool {
			return (w.Credential == "" || w.Credential == c.Name) && (c.Refused != "" || c.Until.After(now))
		})
		if i < 0 {
			return ""
		}
		unusable = append(unusable, credentials[i])
	}
	if len(unusable) == 0 {
		return "" // no worker can run tasks, which tasks.Unable reports
	}
	if i := slices.IndexFunc(unusable, func(c store.Credential) bool { return c.Refused != "" }); i >= 0 {
		return "the model refuses the credential of the workers: " + unusable[i].Refused
	}
	first := slices.MinFunc(unusable, func(a, b store.Credential) int { return a.Until.Compare(b.Until) })
	return "no run starts before " + Time(first.Until) + ": " + first.Why
}

// Sentences joins a problem and its remedy into sentences.
func Sentences(what, remedy string) string {
	text := capitalize(what) + "."
	if remedy != "" {
		text += " " + capitalize(remedy) + "."
	}
	return text
}

func capitalize(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + strings.TrimSuffix(s[n:], ".")
}
