package tasks

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/workspace"
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

// Directories is a source whose tasks may name a local directory.
type Directories interface {
	// Directory gives the real place of one that tasks may work in. The error is for people.
	Directory(path string) (string, error)
}

// Bounds of an offer. A clone that is made for the first time may take longer than anybody waits; the next one who asks then has it.
const (
	offerWait = 20 * time.Second // of whoever asks
	offerTime = 2 * time.Minute  // of the worker
	offerKept = time.Minute
	offerFail = 5 * time.Second // a failure is kept
)

// maxPath bounds the name of a directory, in bytes, as Linux does: it is passed on to workers by way of Redis.
const maxPath = 4096

// offerReply is what a worker tells; one of its fields is set.
type offerReply struct {
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
		if _, err := d.policy.repository(where.Repo); err != nil {
			return Offer{}, err
		}
	}
	question := mustJSON(where)
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
	var reply offerReply
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

// tellOffers answers front doors until ctx ends, one at a time: that many CLIs run beside those of tasks. A worker whose CLI does not work
// leaves them to others.
func (w *Worker) tellOffers(ctx context.Context) {
	_ = w.store.Workers.Respond(ctx, w.health.good, func(ctx context.Context, question json.RawMessage) (json.RawMessage, time.Duration) {
		ctx, cancel := context.WithTimeout(ctx, offerTime)
		defer cancel()
		reply, keep := offerReply{}, offerFail
		var where Where
		err := json.Unmarshal(question, &where)
		if err == nil {
			reply.Offer, err = w.offer(ctx, where)
		}
		refused, isInput := errors.AsType[*InputError](err)
		failed, isFailed := errors.AsType[*CLIError](err)
		switch {
		case err == nil:
			keep = offerKept
		case isInput:
			reply.Refused = refused.Sentence
		case isFailed:
			reply.Failed = failed
		case ctx.Err() != nil:
			return nil, 0 // it stops, and another worker may be asked
		default:
			reply.Failed = agent.NewError(agent.ClassWorkspace, w.cfg.Policy.Redactor.String(err.Error()))
		}
		if reply.Offer == nil {
			w.log.Warn("tell what is offered", "worker", w.id, "repo", where.Repo, "dir", where.Dir, "err", err)
		}
		return mustJSON(reply), keep
	})
}

// offer asks the CLI in a place that is as a run there would have it.
func (w *Worker) offer(ctx context.Context, where Where) (*Offer, error) {
	spec := agent.Spec{ID: fmt.Sprintf("offer-%d", time.Now().UnixNano()), Profile: agent.Write, Model: w.cfg.Model}
	if err := w.offered(ctx, where, &spec); err != nil {
		return nil, err
	}
	told, err := w.runner.Offer(ctx, spec)
	if err != nil {
		return nil, err
	}
	return &Offer{Offer: told, Configured: spec.TrustedConfig && configured(spec.Dir)}, nil
}

// offerThread names the directories in which workers look at what is offered.
const offerThread = "offer"

// offered finds the directory, and whether its own configuration counts. What does not count need not be there: a scratch directory
// then offers the same as a clone.
func (w *Worker) offered(ctx context.Context, where Where, s *agent.Spec) (err error) {
	var repo Repository
	if where.Repo != "" {
		if repo, err = w.cfg.Policy.repository(where.Repo); err != nil {
			return err
		}
	}
	switch {
	case where.Dir != "":
		s.TrustedConfig = true
		s.Dir, err = w.directory(where.Dir)
		return err
	case repo.Trusted && repo.Profile != agent.Read:
		c, err := w.workspace.Checkout(ctx, workspace.Want{Thread: offerThread, Repo: where.Repo, Ref: repo.Base, Base: repo.Base, TrustedConfig: true})
		if errors.Is(err, workspace.ErrNotFound) || errors.Is(err, workspace.ErrAuth) || errors.Is(err, workspace.ErrRef) {
			return &InputError{Sentence: w.cfg.Policy.Redactor.String(fmt.Sprintf("No task can work there: %v.", err))}
		}
		s.TrustedConfig, s.Dir, s.Reads = true, c.Dir, []string{c.Mirror}
		return err
	case repo.Profile == agent.Read:
		s.Profile = agent.Read
	}
	s.Dir, err = w.workspace.Scratch(offerThread)
	return err
}

// directory asks the sources whether tasks may work in a local directory.
func (w *Worker) directory(path string) (string, error) {
	for _, s := range w.cfg.Sources {
		if d, ok := s.(Directories); ok {
			dir, err := d.Directory(path)
			if err != nil {
				return "", &InputError{Sentence: fmt.Sprintf("No task can work there: %v.", err)}
			}
			return dir, nil
		}
	}
	return "", &InputError{Sentence: "No task can work in a local directory here."}
}

// configured reports whether a directory has instructions for the agent.
func configured(dir string) bool {
	for _, name := range []string{".claude", "CLAUDE.md", "AGENTS.md"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}
