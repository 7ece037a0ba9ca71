package tasks

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks/internal/format"
)

// Where is where a task would work: a repository, a local directory, or, when both are empty, a scratch directory.
type Where struct {
	Repo string `json:"repo,omitempty"`
	Dir  string `json:"dir,omitempty"`
}

// Offer is what people can ask for by name somewhere.
type Offer struct {
	agent.Offer

	Configured bool `json:"configured"` // the place has instructions of its own for the agent, and runs there heed them
}

// CLIError says why the CLI could not be asked.
type CLIError = agent.Error

// ErrNoAnswer says that no worker has told what is offered.
var ErrNoAnswer = errors.New("no worker answered")

// offerWait bounds how long Offer waits for a worker.
const offerWait = 20 * time.Second

// maxPath bounds the name of a directory, in bytes, as Linux does: it is passed on to workers by way of Redis.
const maxPath = 4096

// OfferReply is what a worker tells; one of its fields is set.
type OfferReply struct {
	Offer   *Offer    `json:"offer,omitempty"`
	Refused string    `json:"refused,omitempty"`
	Failed  *CLIError `json:"failed,omitempty"`
}

// Offer tells what can be asked for by name in a place. A worker finds out, from its CLI and without the model; for a minute everybody gets
// that answer. An *InputError says that no task may work there, a *CLIError why the CLI could not tell. [ErrNoAnswer]: no worker
// that can run tasks has answered in time.
func (d *Desk) Offer(ctx context.Context, where Where) (Offer, error) {
	switch {
	case where.Repo != "" && where.Dir != "":
		return Offer{}, &InputError{Sentence: "Name either a repository or a directory, not both."}
	case len(where.Dir) > maxPath:
		return Offer{}, &InputError{Sentence: fmt.Sprintf("The name of a directory has at most %d bytes.", maxPath)}
	case where.Repo != "":
		// No worker is asked about what no task may name: a question takes its time.
		if _, err := d.policy.Allowed(where.Repo); err != nil {
			return Offer{}, err
		}
	}
	question := format.JSON(where)
	sum := sha256.Sum256(question)
	ctx, cancel := context.WithTimeoutCause(ctx, d.patience, ErrNoAnswer)
	defer cancel()
	answer, err := d.store.Workers.Inquire(ctx, "offer-"+hex.EncodeToString(sum[:12]), question)
	if ctx.Err() != nil && err != nil {
		err = context.Cause(ctx) // whatever it was that was not done in time
	}
	if err != nil {
		return Offer{}, fmt.Errorf("ask what is offered: %w", err)
	}
	var reply OfferReply
	switch err := json.Unmarshal(answer, &reply); {
	case err != nil:
		return Offer{}, fmt.Errorf("read what is offered: %w", err)
	case reply.Refused != "":
		return Offer{}, &InputError{Sentence: reply.Refused}
	case reply.Failed != nil:
		return Offer{}, reply.Failed
	case reply.Offer == nil:
		return Offer{}, errors.New("read what is offered: the answer says nothing")
	}
	return *reply.Offer, nil
}
