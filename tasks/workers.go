package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks/internal/format"
	"github.com/errand-fleet/errand/tasks/policy"
)

// Able reports whether a worker takes tasks and can run them. A worker that reports nothing about its CLI counts as
// able.
func Able(w store.Worker) bool {
	h, err := ReadHealth(w.Health)
	return err == nil && !w.Draining && w.Cordon == nil && h.OK
}

// Serves reports whether a worker is set up for a source. A worker that does not say so counts as set up for all.
func Serves(w store.Worker, source string) bool {
	return len(w.Sources) == 0 || slices.Contains(w.Sources, source)
}

// serves reports whether a worker can run tasks of a source now.
func serves(seen []store.Worker, source string) bool {
	return slices.ContainsFunc(seen, func(w store.Worker) bool { return Able(w) && Serves(w, source) })
}

// Unserved counts, by source, the waiting tasks for which able workers of their pool exist, but none that is set up for
// their source.
func Unserved(live []store.LiveRecord, seen []store.Worker) map[string]int {
	waiting, pools := map[string]int{}, map[string][]store.Worker{}
	for _, w := range seen {
		pools[w.Pool] = append(pools[w.Pool], w)
	}
	for _, rec := range live {
		members := pools[rec.Pool]
		if source := SourceOf(rec.ID); rec.State == store.Waiting && slices.ContainsFunc(members, Able) &&
			!serves(members, source) {
			waiting[source]++
		}
	}
	return waiting
}

// ReadHealth reads a worker's report on its CLI. A worker without a report counts as healthy.
func ReadHealth(report json.RawMessage) (h agent.Health, err error) {
	if len(report) == 0 {
		return agent.Health{OK: true}, nil
	}
	err = json.Unmarshal(report, &h)
	return h, err
}

const allCordoned = "all workers are cordoned"

// Unable says, for operators, why none of these workers can run a task now, and what to do about it. If no other
// reason applies, it uses the first worker that cannot. Both results are empty if a worker can.
func Unable(seen []store.Worker) (what, remedy string) {
	if len(seen) == 0 {
		return "no worker is alive", "start one, with the same REDIS_URL"
	}
	if slices.ContainsFunc(seen, Able) {
		return "", ""
	}
	for _, w := range seen {
		switch h, err := ReadHealth(w.Health); {
		case err != nil:
			return fmt.Sprintf("the CLI state of worker %s cannot be read",
				w.Host), "run the same version of errand everywhere"
		case !h.OK:
			return fmt.Sprintf("no worker can run tasks: %s (%s)", h.Problem, w.Host), h.Remedy
		}
	}
	if slices.ContainsFunc(seen, func(w store.Worker) bool { return w.Cordon != nil && !w.Draining }) {
		return allCordoned, "uncordon one on the page Fleet, or with enqueue uncordon"
	}
	return "all workers are shutting down", ""
}

// WhyNoWorker explains the same to the asker of a task, as a clause without names and paths of machines.
func WhyNoWorker(seen []store.Worker) string {
	if what, _ := Unable(seen); what == "" || what == allCordoned || len(seen) == 0 {
		return what
	}
	for _, w := range seen {
		if h, err := ReadHealth(w.Health); err == nil && !h.OK && h.Sentence != "" {
			return "no worker can run tasks: " + strings.ToLower(h.Sentence[:1]) + strings.TrimSuffix(h.Sentence[1:],
				".")
		}
	}
	return "no worker can run tasks"
}

// noteUnable sets why a due task waits, if its class is paused or no worker can run tasks.
func (d *Desk) noteUnable(ctx context.Context, list []Status) {
	due := func(s Status) bool { return s.State == string(store.Waiting) && !s.At.After(time.Now()) }
	if !slices.ContainsFunc(list, due) {
		return
	}
	seen, err := d.store.Workers.List(ctx)
	if err != nil {
		return // the task's own reason still holds
	}
	paused, err := d.store.Halts.Paused(ctx)
	if err != nil {
		return
	}
	for i, s := range list {
		if !due(s) {
			continue
		}
		halt, isPaused := paused[s.Task.Class]
		why := WhyNoWorkerIn(seen, s.Pool)
		if isPaused {
			why = WhyPaused(s.Task.Class, halt, time.Now())
		} else if why == "" && !serves(InPool(seen, s.Pool), s.Task.Source) {
			why = "no worker is set up for " + s.Task.Source
		}
		if why != "" {
			list[i].Why, list[i].Unable = why, true
		}
	}
}

// Where is a place where a task can work: a repository or a local directory. If both are empty, it is a scratch
// directory.
type Where struct {
	Repo string `json:"repo,omitempty"`
	Dir  string `json:"dir,omitempty"`

	Outlook bool `json:"outlook,omitempty"` // asks what a run there would get, instead of what the CLI offers
}

// Offer lists the names, such as commands and agents, that people can use in a place.
type Offer struct {
	agent.Offer

	Configured bool `json:"configured"` // the place has its own instructions for the agent, and runs there follow them
}

// CLIError says why the CLI could not be queried.
type CLIError = agent.Error

// ErrNoAnswer means that no worker answered in time.
var ErrNoAnswer = errors.New("no worker answered")

// offerWait bounds how long Offer waits for a worker.
const offerWait = 20 * time.Second

// maxPath is Linux' limit on a path, in bytes. Paths are passed to workers through Redis.
const maxPath = 4096

// OfferReply is a worker's reply. One of its fields is set.
type OfferReply struct {
	Offer   *Offer    `json:"offer,omitempty"`
	Outlook *Outlook  `json:"outlook,omitempty"`
	Refused string    `json:"refused,omitempty"`
	Failed  *CLIError `json:"failed,omitempty"`
}

// Offer returns what people can ask for by name in a place. A worker queries its CLI, without calling the model; the
// answer is cached for a minute. An *InputError says that no task can work there, and a *CLIError why the CLI could
// not answer. It returns [ErrNoAnswer] if no worker that can run tasks answered in time.
func (d *Desk) Offer(ctx context.Context, where Where) (Offer, error) {
	switch reply, err := inquire(ctx, d, where); {
	case err != nil:
		return Offer{}, err
	case reply.Offer == nil:
		return Offer{}, errors.New("decode offer: the reply is empty")
	default:
		return *reply.Offer, nil
	}
}

// inquire asks a worker about a place.
func inquire(ctx context.Context, d *Desk, where Where) (reply OfferReply, err error) {
	pool := ""
	switch {
	case where.Repo != "" && where.Dir != "":
		return reply, &InputError{Sentence: "Name either a repository or a directory, not both."}
	case len(where.Dir) > maxPath:
		return reply, &InputError{Sentence: fmt.Sprintf("The path of a directory can have at most %d bytes.", maxPath)}
	case where.Repo != "":
		// Check this first, because a worker takes seconds to answer.
		allowed, err := d.policy.Allowed(where.Repo)
		if err != nil {
			return reply, err
		}
		pool = allowed.Pool
	}
	repo := d.policy.withoutHost(where.Repo)
	if see := VisitorOf(ctx).May(ctx, policy.See, repo); !see.Allowed && (repo != "" || where.Dir != "") {
		return reply, &InputError{Sentence: "You may not see this repository or directory."}
	}
	question := format.JSON(where)
	ctx, cancel := context.WithTimeoutCause(ctx, d.patience, ErrNoAnswer)
	defer cancel()
	answer, err := d.store.Workers.Inquire(ctx, pool, "offer-"+format.Hash(string(question)), question)
	if ctx.Err() != nil && err != nil {
		err = context.Cause(ctx) // the same error for every step that was too slow
	}
	if err != nil {
		return reply, fmt.Errorf("query offer: %w", err)
	}
	switch err := json.Unmarshal(answer, &reply); {
	case err != nil:
		return reply, fmt.Errorf("decode offer: %w", err)
	case reply.Refused != "":
		return reply, &InputError{Sentence: reply.Refused}
	case reply.Failed != nil:
		return reply, reply.Failed
	}
	return reply, nil
}
