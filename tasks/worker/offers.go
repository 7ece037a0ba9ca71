package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/internal/format"
	"github.com/errand-fleet/errand/workspace"
)

// Bounds of an offer. A clone that is made for the first time may take longer than anybody waits; the next one who asks then has it.
const (
	offerTime = 2 * time.Minute // of the worker
	offerKept = time.Minute
	offerFail = 5 * time.Second // a failure is kept
)

// tellOffers answers front doors until ctx ends, one at a time: that many CLIs run beside those of tasks. A worker whose CLI does not work
// leaves them to others.
func (w *Worker) tellOffers(ctx context.Context) {
	_ = w.store.Workers.Respond(ctx, w.health.good, func(ctx context.Context, question json.RawMessage) (json.RawMessage, time.Duration) {
		ctx, cancel := context.WithTimeout(ctx, offerTime)
		defer cancel()
		reply, keep := tasks.OfferReply{}, offerFail
		var where tasks.Where
		err := json.Unmarshal(question, &where)
		if err == nil {
			reply.Offer, err = w.offer(ctx, where)
		}
		refused, isInput := errors.AsType[*tasks.InputError](err)
		failed, isFailed := errors.AsType[*tasks.CLIError](err)
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
		return format.JSON(reply), keep
	})
}

// offer asks the CLI in a place that is as a run there would have it.
func (w *Worker) offer(ctx context.Context, where tasks.Where) (*tasks.Offer, error) {
	spec := agent.Spec{ID: fmt.Sprintf("offer-%d", time.Now().UnixNano()), Profile: agent.Write, Model: w.cfg.Model}
	if err := w.offered(ctx, where, &spec); err != nil {
		return nil, err
	}
	told, err := w.runner.Offer(ctx, spec)
	if err != nil {
		return nil, err
	}
	return &tasks.Offer{Offer: told, Configured: spec.TrustedConfig && configured(spec.Dir)}, nil
}

// offerThread names the directories in which workers look at what is offered.
const offerThread = "offer"

// offered finds the directory, and whether its own configuration counts. What does not count need not be there: a scratch directory
// then offers the same as a clone.
func (w *Worker) offered(ctx context.Context, where tasks.Where, s *agent.Spec) (err error) {
	var repo tasks.Repository
	if where.Repo != "" {
		if repo, err = w.cfg.Policy.Allowed(where.Repo); err != nil {
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
			return &tasks.InputError{Sentence: w.cfg.Policy.Redactor.String(fmt.Sprintf("No task can work there: %v.", err))}
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
		if d, ok := s.(tasks.Directories); ok {
			dir, err := d.Directory(path)
			if err != nil {
				return "", &tasks.InputError{Sentence: fmt.Sprintf("No task can work there: %v.", err)}
			}
			return dir, nil
		}
	}
	return "", &tasks.InputError{Sentence: "No task can work in a local directory here."}
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
