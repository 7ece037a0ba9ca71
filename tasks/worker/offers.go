package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/environment"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/capacity"
	"github.com/errand-fleet/errand/tasks/internal/format"
	"github.com/errand-fleet/errand/tasks/rights"
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
	store     *store.Store
	workspace *workspace.Workspace
	runner    Runner
	policy    rights.Policy
	sources   []tasks.Source
	pool      string
	secrets   func(repo string) map[string]string
	exposed   func(repo string) map[string]string
	limits    []string
	log       *slog.Logger

	health       *machine.Health
	declarations *place.Declarations
	publisher    *publish.Publisher
}

// answer answers the offer queries of front doors until ctx ends, one at a time, so that at most one extra CLI
// runs. A worker whose CLI does not work leaves them to others.
func (o *offerer) answer(ctx context.Context) {
	_ = o.store.Workers.Respond(ctx, o.pool, o.health.Good,
		func(ctx context.Context, question json.RawMessage) (json.RawMessage, time.Duration) {
			ctx, cancel := context.WithTimeout(ctx, offerTime)
			defer cancel()
			reply, keep := o.reply(ctx, question)
			if keep == 0 {
				return nil, 0 // the worker stops; another one may be asked
			}
			return format.JSON(reply), keep
		})
}

// reply answers one query, and returns for how long the answer is kept; 0 if ctx has ended before.
func (o *offerer) reply(ctx context.Context, question json.RawMessage) (reply capacity.OfferReply, keep time.Duration) {
	var where capacity.Where
	err := json.Unmarshal(question, &where)
	if err == nil {
		reply, err = o.look(ctx, where)
	}
	if err == nil {
		return reply, offerKept
	}
	if refused, ok := errors.AsType[*tasks.InputError](err); ok {
		reply = capacity.OfferReply{Refused: refused.Sentence}
	} else if failed, ok := errors.AsType[*capacity.CLIError](err); ok {
		reply = capacity.OfferReply{Failed: failed}
	} else if ctx.Err() != nil {
		return capacity.OfferReply{}, 0
	} else {
		reply = capacity.OfferReply{
			Failed: agent.NewError(agent.ClassWorkspace, o.policy.Redactor.String(err.Error())),
		}
	}
	o.log.Warn("answer offer query", "repo", where.Repo, "dir", where.Dir, "err", err)
	return reply, offerFail
}

// look answers what a query asks for.
func (o *offerer) look(ctx context.Context, where capacity.Where) (reply capacity.OfferReply, err error) {
	if where.Outlook {
		reply.Outlook, err = o.outlook(ctx, where.Repo)
	} else {
		reply.Offer, err = o.offer(ctx, where)
	}
	return reply, err
}

// offer queries the CLI in the same environment as a run's.
func (o *offerer) offer(ctx context.Context, where capacity.Where) (*capacity.Offer, error) {
	spec := agent.Spec{ID: fmt.Sprintf("offer-%d", time.Now().UnixNano()), Profile: agent.Write}
	spec.Model = o.policy.Settle(tasks.Task{Repo: where.Repo}, environment.RunChoice{}).Value("model")
	spec, err := o.chooseDir(ctx, where, spec)
	if err != nil {
		return nil, err
	}
	offer, err := o.runner.Offer(ctx, spec)
	if err != nil {
		return nil, err
	}
	return &capacity.Offer{Offer: offer, Configured: configured(spec)}, nil
}

// chooseDir returns the specification with the directory, its instructions, and whether its own configuration counts.
func (o *offerer) chooseDir(ctx context.Context, where capacity.Where, s agent.Spec) (_ agent.Spec, err error) {
	s.Instructions = slices.Clone(o.policy.Plugins)
	var repo rights.Repository
	if where.Repo != "" {
		if repo, err = o.policy.Allowed(where.Repo); err != nil {
			return s, err
		}
	}
	if where.Dir != "" {
		s.TrustedConfig = true
		s.Dir, err = o.directory(where.Dir)
		return s, err
	}
	if where.Repo == "" {
		s.Dir, err = o.workspace.Scratch(offerThread)
		return s, err
	}
	s.TrustedConfig = repo.Trusted && repo.Profile != agent.Read
	if repo.Profile == agent.Read {
		s.Profile = agent.Read
	}
	c, err := o.clone(ctx, workspace.Want{
		Thread: offerThread, Repo: where.Repo, Ref: repo.Base, Protected: repo.Base, TrustedConfig: s.TrustedConfig,
	})
	if err != nil {
		return s, err
	}
	s.Dir, s.Reads = c.Dir, []string{c.Mirror}
	own, err := place.Instructions(ctx, o.workspace, c)
	s.Instructions = append(s.Instructions, own...)
	return s, err
}

// directory asks the sources whether tasks may work in a local directory.
func (o *offerer) directory(path string) (string, error) {
	for _, s := range o.sources {
		if resolve := s.Capabilities().Directory; resolve != nil {
			dir, err := resolve(path)
			if err != nil {
				return "", &tasks.InputError{Sentence: fmt.Sprintf("No task can work there: %v.", err)}
			}
			return dir, nil
		}
	}
	return "", &tasks.InputError{Sentence: "No task can work in a local directory here."}
}

// configured reports whether the directory of an offer has instructions for the agent.
func configured(s agent.Spec) bool {
	for _, i := range s.Instructions {
		if i.Dir != "" {
			return len(i.Names()) > 0
		}
	}
	for _, name := range []string{".claude", "CLAUDE.md", "AGENTS.md"} {
		if _, err := os.Lstat(filepath.Join(s.Dir, name)); s.TrustedConfig && err == nil {
			return true
		}
	}
	return false
}
