package publish

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/environment"
	"github.com/errand-fleet/errand/forge"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/workspace"
)

const (
	// egressBranch is the branch on which errand proposes the hosts that the runs of a repository have reached.
	egressBranch = "errand/egress"
	// learnFor bounds a proposal, which the answer of its run waits for: only a run that has a claim may push.
	learnFor = 30 * time.Second
)

// learning lets one run of the worker at a time propose hosts of a repository, and the others go on. It is safe for
// concurrent use.
type learning struct {
	mu   sync.Mutex
	busy map[string]bool     // repositories for which a run proposes hosts at present
	left map[string][]string // by repository: hosts of runs that met another one
}

// begin returns the hosts that a run is to propose: what it has reached, and what earlier runs have left. If another
// run of the repository proposes some at present, it leaves them for a later one and returns none.
func (l *learning) begin(repo string, reached []string) (hosts []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.busy == nil {
		l.busy, l.left = map[string]bool{}, map[string][]string{}
	}
	hosts = l.left[repo]
	for _, host := range reached {
		if !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	if l.busy[repo] {
		l.left[repo] = hosts
		return nil
	}
	l.busy[repo] = true
	delete(l.left, repo)
	return hosts
}

func (l *learning) end(repo string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.busy, repo)
}

// Reached adds the hosts that a part of a run has reached, if they are to be proposed.
func Reached(hosts []string, e *agent.EgressReport) []string {
	if e == nil || !e.Learn {
		return hosts
	}
	for _, host := range e.Reached {
		if !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// ProposeEgress proposes the hosts that a run has reached, and that no list has, as a draft pull request to the base
// branch of the repository. Later runs add to the same one. Runs for other branches or several repositories propose
// nothing. A failure costs nothing but the proposal: the task's page lists the hosts.
func (b *Publisher) ProposeEgress(w Work, reached []string) {
	t, c := w.Task, w.Place.Clone
	if len(reached) == 0 || len(t.Also) > 0 || !b.Publishes(t) || w.Ctx.Err() != nil {
		return
	}
	if _, err := b.Policy.Allowed(t.Repo); err != nil || c.Base != c.Protected {
		return
	}
	hosts := b.learning.begin(t.Repo, reached)
	if len(hosts) == 0 {
		return
	}
	defer b.learning.end(t.Repo)
	ctx, cancel := during(w.Hold, learnFor)
	defer cancel()
	pr, err := b.proposeHosts(ctx, w, hosts)
	if err != nil {
		b.Log.Warn("propose egress", "run", t.ID, "repo", t.Repo, "err", err)
		return
	}
	if pr.URL != "" {
		w.Notice("Proposed the hosts that runs have reached as their egress list: " + pr.URL)
	}
}

// learned are hosts to add to the list of a base branch.
type learned struct {
	text  string // its environment.File
	hosts []string
}

// unlisted returns those of the hosts that neither the fleet's list nor the base branch has, with those that were
// proposed before. It returns none if all of them were proposed.
func (b *Publisher) unlisted(ctx context.Context, c workspace.Clone, reached []string) (found learned, err error) {
	if found.text, err = b.Workspace.BaseFile(ctx, c, environment.File, environment.MaxFile); err != nil {
		return found, err
	}
	declared, _ := environment.Parse([]byte(found.text))
	listed := agent.Egress{}.Plus(slices.Concat(b.Policy.Egress.Hosts, declared.Egress.Hosts))
	missing := func(host string) bool {
		known, _ := listed.Allows(host, "443", true)
		return !known && !strings.Contains(host, ":") // a repository cannot list private hosts
	}
	for _, host := range reached {
		if missing(host) {
			found.hosts = append(found.hosts, host)
		}
	}
	ours, err := b.Store.Threads.Pushed(ctx, c.Repo, egressBranch)
	if err != nil || len(ours) == 0 || len(found.hosts) == 0 {
		return found, err
	}
	c.ProtectedSHA = ours[0]
	before, err := b.Workspace.BaseFile(ctx, c, environment.File, environment.MaxFile)
	if err != nil {
		return found, nil //nolint:nilerr // the branch is gone, so it proposes nothing
	}
	proposed, _ := environment.Parse([]byte(before))
	if !slices.ContainsFunc(found.hosts, func(host string) bool {
		return !slices.Contains(proposed.Egress.Hosts, host)
	}) {
		return learned{}, nil
	}
	for _, host := range proposed.Egress.Hosts {
		if missing(host) && !slices.Contains(found.hosts, host) {
			found.hosts = append(found.hosts, host)
		}
	}
	return found, nil
}

// proposeHosts pushes the base branch's file with the hosts that it lacks, if any, and opens the pull request or
// updates it.
func (b *Publisher) proposeHosts(ctx context.Context, w Work, reached []string) (pr forge.PullRequestRef, err error) {
	t, own := w.Task, w.Place.Clone
	if found, err := b.unlisted(ctx, own, reached); err != nil || len(found.hosts) == 0 {
		return pr, err
	}
	// No agent writes to the clone of this thread.
	thread := egressBranch + "/" + t.Repo
	c, err := b.Workspace.Checkout(ctx, workspace.Want{
		Thread: thread, Repo: t.Repo, Ref: "refs/heads/" + own.Base, Protected: own.Protected,
	})
	if err != nil {
		return pr, err
	}
	found, err := b.unlisted(ctx, c, reached) // the file may have changed since the run began
	if err != nil || len(found.hosts) == 0 {
		return pr, err
	}
	if err := listHosts(c, found); err != nil {
		return pr, err
	}
	ours, err := b.Store.Threads.Pushed(ctx, t.Repo, egressBranch)
	if err != nil {
		return pr, err
	}
	title := fmt.Sprintf("List the %d hosts that errand's runs reach", len(found.hosts))
	pushed, err := b.Workspace.Publish(ctx, c, workspace.Publication{
		Branch: egressBranch, Message: title + "\n\n" + Trailers(t, "") + "\n", Ours: ours,
		Author: b.author(ctx, t.Repo),
		Permit: func(_ context.Context, commit string) error {
			return w.Claim.Pushing(w.Detached, t.Repo, egressBranch, commit)
		},
	})
	if err != nil || pushed.Commit == "" {
		return pr, err
	}
	proposal := b.proposal(t, tasks.Work{
		Repo: t.Repo, Branch: egressBranch, Commit: pushed.Commit, Base: c.Base, Title: title,
	}, "The runs of this repository have reached these hosts, which no list allows yet. Remove those that they should "+
		"not reach. After the merge, an operator can remove `egress: learn`.\n\n- `"+
		strings.Join(found.hosts, "`\n- `")+"`")
	proposal.Thread = thread
	pr, err = b.Forge.Publish(ctx, proposal)
	if err != nil {
		return pr, err
	}
	b.Log.Info("hosts proposed", "run", t.ID, "repo", t.Repo, "branch", egressBranch, "url", pr.URL)
	return pr, nil
}

// listHosts writes the file with further hosts into a clone.
func listHosts(c workspace.Clone, found learned) error {
	text, err := environment.WithHosts(found.text, found.hosts)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(c.Dir)
	if err != nil {
		return fmt.Errorf("open clone: %w", err)
	}
	defer root.Close()
	err = errors.Join(root.MkdirAll(path.Dir(environment.File), 0o755),
		root.WriteFile(environment.File, []byte(text), 0o644))
	if err != nil {
		return fmt.Errorf("write %s: %w", environment.File, err)
	}
	return nil
}
