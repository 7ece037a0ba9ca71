// Package publish makes the work of runs public: it pushes branches after the repository's checks, and opens pull
// requests.
package publish

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/environment"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/rights"
	"github.com/errand-fleet/errand/tasks/worker/hold"
	"github.com/errand-fleet/errand/tasks/worker/logline"
	"github.com/errand-fleet/errand/tasks/worker/place"
	"github.com/errand-fleet/errand/workspace"
)

const (
	publishFor      = 2 * time.Minute  // before the checks of a repository, and after them
	publishDraining = 20 * time.Second // how much longer publishing may take when the worker drains
	proposeFirst    = time.Minute      // the first attempt to open the pull requests
)

// Publisher pushes the work of answered tasks and opens their pull requests. It is safe for concurrent use.
type Publisher struct {
	Store     *store.Store
	Workspace *workspace.Workspace
	Scripts   Scripts
	Policy    rights.Policy
	Forge     tasks.Publisher // nil: nothing is published
	// Commands returns the verification commands of a repository; nil: none.
	Commands   func(ctx context.Context, repo string) ([]string, error)
	Author     string // name and address of errand in commits; those of its account at the forge if ""
	ConsoleURL string // base URL of the console, without a trailing slash; may be empty
	Log        *slog.Logger
}

// Scripts runs the checks. *agent.Runner implements it.
type Scripts interface {
	Script(ctx context.Context, s agent.Script) (agent.Scripted, error)
}

// Work is what a run has done in its place.
type Work struct {
	*hold.Hold

	Task   tasks.Task
	Place  place.Place
	Result agent.Result
	// Show passes an event to the task's followers, and Notice a text also to its events.
	Show   func(agent.Event)
	Notice func(text string)
}

// Branch returns the branch for the work of a thread. Its last part is always the same, and a hash hides names of
// people in the thread's name.
func Branch(prefix, thread string) string {
	source, _, _ := strings.Cut(thread, "/")
	return cmp.Or(prefix, environment.DefaultBranchPrefix) + fmt.Sprintf("%s-%x", source,
		sha256.Sum256([]byte(thread)))[:len(source)+1+10]
}

// Publishes reports whether the task's work is published.
func (b *Publisher) Publishes(t tasks.Task) bool {
	return b.Forge != nil && t.Repo != "" && t.Profile == agent.Write
}

// Publish pushes the work of an answered task in each of its repositories, and tries once to open the pull requests.
// The work of a task that a person takes over is only pushed, without checks: they wait for it, and go on with it.
// Publish returns the ending with what was published, and with the hosts that the checks have reached. Errors are
// reported in the ending: they lose neither the answer nor the work, which stays in the clones. After a lost claim, the
// store decides whether this worker may store the ending.
func (b *Publisher) Publish(w Work, e tasks.Ending) tasks.Ending {
	if w.Place.Branch == "" || e.Kind != tasks.Answered && e.Kind != tasks.Taken {
		return e
	}
	limited, cancel := during(w.Hold, w.checksLeft()+2*publishFor)
	defer cancel()
	one := &publication{Publisher: b, work: w, reached: e.Result.Egress, taken: e.Kind == tasks.Taken}
	var all []*tasks.Published
	for _, p := range w.Place.Clones() {
		done := one.clone(limited, place.ForRepository(w.Task, p.Clone.Repo), p)
		if done == nil {
			continue
		}
		if done.Problem != "" && len(w.Place.Also) > 0 {
			done.Problem = p.Clone.Repo + ": " + done.Problem
		}
		all = append(all, done)
	}
	if len(all) > 0 {
		e.Published, e.Also = all[0], all[1:]
	}

	limited, cancel = during(w.Hold, proposeFirst)
	defer cancel()
	err := b.proposeAll(limited, w.Task, &e) // the outbox retries
	logline.Warn(b.Log, err, "open pull request", "run", w.Task.ID, "thread", w.Task.Thread)
	e.Result.Egress = one.reached
	return e
}

// publication is the state of one Publish. One goroutine uses it.
type publication struct {
	*Publisher

	work      Work
	verifying time.Time           // when the first checks began; zero before
	stuck     bool                // a process of the checks could not be stopped
	taken     bool                // a person takes it over
	reached   *agent.EgressReport // the run's, with what its checks have reached
}

// clone pushes the work in one clone. It returns nil if there is nothing to publish.
func (b *publication) clone(ctx context.Context, t tasks.Task, p place.Place) *tasks.Published {
	ctx, patience, cancel := patiently(ctx)
	defer cancel()
	pushed, checks, err := b.push(ctx, patience, t, p)
	if err != nil {
		b.Log.Warn("publish work", "run", t.ID, "thread", t.Thread, "repo", t.Repo, "err", err)
		said := b.Policy.Redactor.String(unpublished(err, p.Clone.Dir)) // it may quote the remote
		return &tasks.Published{Problem: "The changes were not published: " +
			said + ". They are kept. Ask again here to continue."}
	}
	if pushed.Commit == "" {
		return nil
	}
	if pushed.New {
		b.Log.Info("work published", "run", t.ID, "thread", t.Thread, "branch", p.Branch, "commit", pushed.Commit)
	}
	return &tasks.Published{Due: !b.taken, Work: tasks.Work{
		Repo: t.Repo, Branch: p.Branch, Commit: pushed.Commit, Base: cmp.Or(p.Into, p.Clone.Base), Fixes: p.Fixes,
		Title:        cmp.Or(b.Policy.Redactor.String(pushed.Subject), t.Subject()),
		Verification: checks, Style: b.style(ctx, p),
	}}
}

// tellable lists the errors of publishing whose texts are meant for people.
var tellable = []error{
	workspace.ErrUnfit, workspace.ErrForeign, workspace.ErrRejected, workspace.ErrNotFound, workspace.ErrAuth,
	errPublishTime, errStuck, errVerifyStuck,
}

var (
	errPublishTime = errors.New("it took too long")
	errStuck       = errors.New("a process of the run could not be stopped and may still change them")
	errVerifyStuck = errors.New("a process of the checks could not be stopped and may still change them")
)

// unpublished says, for people, why nothing was published. Other errors are about the worker's machine and are only
// in its log.
func unpublished(err error, dir string) string {
	if !slices.ContainsFunc(tellable, func(known error) bool { return errors.Is(err, known) }) {
		return "the worker failed to do it; its log has details"
	}
	said := err.Error()
	if dir != "" {
		said = strings.ReplaceAll(said, dir, "the clone")
	}
	return said
}

// during returns the context of publishing in all repositories, which may take a time in all. It ends at once if the
// claim is lost, and soon if the worker drains.
func during(h *hold.Hold, most time.Duration) (context.Context, context.CancelFunc) {
	ctx, stop := context.WithCancelCause(h.Detached)
	late := time.AfterFunc(most, func() { stop(errPublishTime) })
	forget := context.AfterFunc(h.Ctx, func() {
		if errors.Is(h.Cause(), hold.ErrClaimLost) {
			stop(hold.ErrClaimLost)
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(publishDraining):
			stop(h.Cause())
		}
	})
	return ctx, func() { forget(); late.Stop(); stop(nil) }
}

// patiently returns the context of publishing in one repository, which patience limits: a slow one leaves time for
// others.
func patiently(ctx context.Context) (_ context.Context, patience *time.Timer, cancel context.CancelFunc) {
	ctx, stop := context.WithCancelCause(ctx)
	patience = time.AfterFunc(publishFor, func() { stop(errPublishTime) })
	return ctx, patience, func() { patience.Stop(); stop(nil) }
}

// push pushes the work to the remote, if this worker still has the claim. Right before the push, when its content is
// fixed, the verification commands run; files that they leave behind are not pushed. Their time does not count
// against patience.
func (b *publication) push(
	ctx context.Context, patience *time.Timer, t tasks.Task, p place.Place,
) (_ workspace.Pushed, checks *tasks.Verification, err error) {
	if b.work.Result.Resources.Stuck > 0 { // git opens files by name, and the process could replace them
		return workspace.Pushed{}, nil, errStuck
	}
	if b.stuck { // a process of another repository's checks, which may use the run's files
		return workspace.Pushed{}, nil, errVerifyStuck
	}
	ours, err := b.Store.Threads.Pushed(ctx, t.Repo, p.Branch)
	if err != nil {
		return workspace.Pushed{}, nil, err
	}
	pushed, err := b.Workspace.Publish(ctx, p.Clone, workspace.Publication{
		Branch: p.Branch, Message: t.Subject() + "\n\n" + Trailers(t, p.CoAuthor) + "\n",
		TrustedConfig: p.Trusted, Ours: ours, Refuse: p.RefusesSecrets(),
		Author: p.Author, Asker: p.CoAuthor, Credit: func(message string) string {
			return credit(message, t.ID, p.CoAuthor)
		},
		Permit: func(_ context.Context, commit string) (err error) {
			if b.taken {
				return b.permit(t.Repo, p.Branch, commit)
			}
			patience.Stop()
			if checks, err = b.verify(t, p); err != nil {
				return err
			}
			patience.Reset(publishFor)
			return b.permit(t.Repo, p.Branch, commit)
		},
	})
	if err != nil || pushed.Commit == "" || pushed.New || b.taken {
		return pushed, checks, err
	}
	// The work was pushed by an earlier run, which has run the checks.
	if some, err := b.CommandsOf(ctx, t.Repo); err != nil || len(some) > 0 {
		checks = &tasks.Verification{Before: true}
	}
	return pushed, checks, nil
}

// permit asks the store whether this worker may push a commit.
func (b *publication) permit(repo, branch, commit string) error {
	held, err := b.work.Persist("publish", func() error {
		return b.work.Claim.Pushing(b.work.Detached, repo, branch, commit)
	})
	if err == nil && !held {
		return hold.ErrClaimLost
	}
	return err
}
