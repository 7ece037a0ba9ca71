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
	"github.com/errand-fleet/errand/tasks/worker/machine"
	"github.com/errand-fleet/errand/tasks/worker/place"
	"github.com/errand-fleet/errand/tasks/worker/publish"
	"github.com/errand-fleet/errand/workspace"
)

// Bounds of an offer. Making a clone for the first time may take longer than the asker waits; the next request then
// finds it.
const (
	offerTime = 2 * time.Minute // for one query
	offerKept = time.Minute
	offerFail = 5 * time.Second // how long a failure is cached
)

// offerer answers what the CLI offers in a repository or directory: its models, commands and modes.
type offerer struct {
	*Config

	health       *machine.Health
	declarations *place.Declarations
	publisher    *publish.Publisher
}

// answer answers the offer queries of front doors until ctx ends, one at a time, so that at most one extra CLI
// runs. A worker whose CLI does not work leaves them to others.
func (o *offerer) answer(ctx context.Context) {
	_ = o.Store.Workers.Respond(ctx, o.Pool, o.health.Good,
		func(ctx context.Context, question json.RawMessage) (json.RawMessage, time.Duration) {
			ctx, cancel := context.WithTimeout(ctx, offerTime)
			defer cancel()
			reply, keep := tasks.OfferReply{}, offerFail
			var where tasks.Where
			err := json.Unmarshal(question, &where)
			switch {
			case err != nil:
			case where.Outlook:
				reply.Outlook, err = o.outlook(ctx, where.Repo)
			default:
				reply.Offer, err = o.offer(ctx, where)
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
				reply.Failed = agent.NewError(agent.ClassWorkspace, o.Policy.Redactor.String(err.Error()))
			}
			if err != nil {
				o.Log.Warn("answer offer query", "repo", where.Repo, "dir", where.Dir, "err", err)
			}
			return format.JSON(reply), keep
		})
}

// offer queries the CLI in the same environment as a run's.
func (o *offerer) offer(ctx context.Context, where tasks.Where) (*tasks.Offer, error) {
	spec := agent.Spec{ID: fmt.Sprintf("offer-%d", time.Now().UnixNano()), Profile: agent.Write, Model: o.Model}
	if err := o.chooseDir(ctx, where, &spec); err != nil {
		return nil, err
	}
	offer, err := o.Runner.Offer(ctx, spec)
	if err != nil {
		return nil, err
	}
	return &tasks.Offer{Offer: offer, Configured: spec.TrustedConfig && configured(spec.Dir)}, nil
}

// offerThread names the directories that workers use for offers.
const offerThread = "offer"

// chooseDir sets the directory, and whether its own configuration counts. If it does not count, an empty scratch
// directory offers the same as a clone.
func (o *offerer) chooseDir(ctx context.Context, where tasks.Where, s *agent.Spec) (err error) {
	var repo tasks.Repository
	if where.Repo != "" {
		if repo, err = o.Policy.Allowed(where.Repo); err != nil {
			return err
		}
	}
	switch {
	case where.Dir != "":
		s.TrustedConfig = true
		s.Dir, err = o.directory(where.Dir)
		return err
	case repo.Trusted && repo.Profile != agent.Read:
		c, err := o.clone(ctx, workspace.Want{
			Thread: offerThread, Repo: where.Repo, Ref: repo.Base, Base: repo.Base, TrustedConfig: true,
		})
		s.TrustedConfig, s.Dir, s.Reads = true, c.Dir, []string{c.Mirror}
		return err
	case repo.Profile == agent.Read:
		s.Profile = agent.Read
	}
	s.Dir, err = o.Workspace.Scratch(offerThread)
	return err
}

// clone makes a clone to look at.
func (o *offerer) clone(ctx context.Context, want workspace.Want) (workspace.Clone, error) {
	c, err := o.Workspace.Checkout(ctx, want)
	if errors.Is(err, workspace.ErrNotFound) || errors.Is(err, workspace.ErrAuth) || errors.Is(err, workspace.ErrRef) {
		err = &tasks.InputError{Sentence: o.Policy.Redactor.String(fmt.Sprintf("No task can work there: %v.", err))}
	}
	return c, err
}

// directory asks the sources whether tasks may work in a local directory.
func (o *offerer) directory(path string) (string, error) {
	for _, s := range o.Sources {
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
