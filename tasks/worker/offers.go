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

// Bounds of an offer. Making a clone for the first time may take longer than the asker waits; the next request then
// finds it.
const (
	offerTime = 2 * time.Minute // for one query
	offerKept = time.Minute
	offerFail = 5 * time.Second // how long a failure is cached
)

// answerOffers answers the offer queries of front doors until ctx ends, one at a time, so that at most one extra CLI
// runs. A worker whose CLI does not work leaves them to others.
func (w *Worker) answerOffers(ctx context.Context) {
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
			return nil, 0 // the worker stops; another one may be asked
		default:
			reply.Failed = agent.NewError(agent.ClassWorkspace, w.cfg.Policy.Redactor.String(err.Error()))
		}
		if reply.Offer == nil {
			w.log.Warn("answer offer query", "worker", w.id, "repo", where.Repo, "dir", where.Dir, "err", err)
		}
		return format.JSON(reply), keep
	})
}

// offer queries the CLI in the same environment as a run's.
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

// offerThread names the directories that workers use for offers.
const offerThread = "offer"

// offered sets the directory, and whether its own configuration counts. If it does not count, an empty scratch
// directory offers the same as a clone.
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
