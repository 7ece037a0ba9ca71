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

// Where is a place where a task can work: a repository or a local directory. If both are empty, it is a scratch
// directory.
type Where struct {
	Repo string `json:"repo,omitempty"`
	Dir  string `json:"dir,omitempty"`
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
	Refused string    `json:"refused,omitempty"`
	Failed  *CLIError `json:"failed,omitempty"`
}

// Offer returns what people can ask for by name in a place. A worker queries its CLI, without calling the model; the
// answer is cached for a minute. An *InputError says that no task can work there, and a *CLIError why the CLI could
// not answer. It returns [ErrNoAnswer] if no worker that can run tasks answered in time.
func (d *Desk) Offer(ctx context.Context, where Where) (Offer, error) {
	switch {
	case where.Repo != "" && where.Dir != "":
		return Offer{}, &InputError{Sentence: "Name either a repository or a directory, not both."}
	case len(where.Dir) > maxPath:
		return Offer{}, &InputError{Sentence: fmt.Sprintf("The name of a directory has at most %d bytes.", maxPath)}
	case where.Repo != "":
		// Check this first, because a worker takes seconds to answer.
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
		err = context.Cause(ctx) // the same error for every step that was too slow
	}
	if err != nil {
		return Offer{}, fmt.Errorf("query offer: %w", err)
	}
	var reply OfferReply
	switch err := json.Unmarshal(answer, &reply); {
	case err != nil:
		return Offer{}, fmt.Errorf("decode offer: %w", err)
	case reply.Refused != "":
		return Offer{}, &InputError{Sentence: reply.Refused}
	case reply.Failed != nil:
		return Offer{}, reply.Failed
	case reply.Offer == nil:
		return Offer{}, errors.New("decode offer: the reply is empty")
	}
	return *reply.Offer, nil
}
