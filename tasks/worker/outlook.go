package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/environment"
	"github.com/errand-fleet/errand/internal/display"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/capacity"
	"github.com/errand-fleet/errand/tasks/rights"
	"github.com/errand-fleet/errand/tasks/worker/place"
	"github.com/errand-fleet/errand/workspace"
)

// outlook returns what a run in a repository would get on this worker.
func (o *offerer) outlook(ctx context.Context, name string) (*capacity.Outlook, error) {
	repo, err := o.policy.Allowed(name)
	if err != nil {
		return nil, err
	}
	c, err := o.clone(ctx, workspace.Want{
		Thread: offerThread, Repo: name, Ref: repo.Base, Protected: repo.Base, Submodule: o.submodules(name),
	})
	if err != nil {
		return nil, err
	}
	sandboxed, look := o.runner.Separated(), &capacity.Outlook{Repo: name}
	declare := o.declarations.Of
	if repo.Profile == agent.Read {
		look.Miss(store.Note, "no environment", "Runs in the repository execute no commands.", "")
		declare = o.declarations.Least
	}
	declared, err := declare(ctx, repo, c)
	if err != nil {
		return nil, err
	}
	d := declared.Environment
	for _, note := range declared.Notes {
		look.Miss(store.Warning, o.policy.Redactor.String(note), "This part of the file is left out.",
			"Correct it on the base branch.")
	}
	if declared.Lacking != "" {
		look.Miss(store.Warning, declared.Lacking, "Runs use the worker's own tools.",
			"Install mise where runs can execute it, such as /usr/local/bin.")
	}
	if err := o.instructed(ctx, look, c); err != nil {
		return nil, err
	}
	o.settles(look, c, declared.Own)
	look.Add("sandbox", map[bool]string{true: "yes", false: "no"}[sandboxed])
	look.Add("set-up", o.redacted(d.Setup)...)
	look.Add("before each run", o.redacted(d.Start)...)
	if err := o.keeps(ctx, look, c, d); err != nil {
		return nil, err
	}
	look.Add("path", o.redacted(d.Path)...)
	look.Add("variables", slices.Sorted(maps.Keys(d.Env))...)
	secrets, exposed := names(o.secrets, name), names(o.exposed, name)
	look.Add("secrets, for the set-up", secrets...)
	look.Add("secrets, also for the agent and the checks", exposed...)
	look.Add("egress", reach(d.Egress)...)
	o.checks(ctx, look, c)
	look.Add("limits", o.limits...)
	if !sandboxed {
		look.Miss(store.Warning, "no sandbox",
			"Each thread gets a copy of the environment, and runs reach the worker's whole network.",
			"Set ERRAND_SANDBOX=bwrap.")
	}
	if len(secrets) > len(exposed) && len(d.Setup) == 0 {
		look.Miss(store.Warning, "secrets without a set-up", "Only a set-up gets them, and none is declared.",
			"Declare setup in "+cmp.Or(declared.Own.File, environment.File)+".")
	}
	return look, nil
}

// submodules permits what runs get that nobody has asked for.
func (o *offerer) submodules(repo string) func(context.Context, string) (string, error) {
	return func(ctx context.Context, other string) (string, error) {
		_, why, err := o.policy.PermitSubmodule(ctx, o.store, tasks.Task{Repo: repo, Unasked: true}, other)
		return why, err
	}
}

// instructed adds what the clone lacks, and what the base branch tells the agent.
func (o *offerer) instructed(ctx context.Context, look *capacity.Outlook, c workspace.Clone) error {
	for _, lack := range c.Lacks {
		said := o.policy.Redactor.String(lack.String())
		look.Miss(store.Warning, said, "Runs work without, and are told so.", "")
	}
	if c.LFS {
		look.Miss(store.Note, "there are files in Git LFS", "Work with new contents of them is not published.", "")
	}
	given, err := place.Instructions(ctx, o.workspace, c)
	if err != nil {
		return err
	}
	look.Add("instructions", o.redacted(given[0].Names())...)
	for _, note := range given[0].Notes {
		look.Miss(store.Warning, o.policy.Redactor.String(note), "Runs do not get it.", "Change it on the base branch.")
	}
	return nil
}

// settles adds the model, the effort, the directory and the operator's texts that count in a repository, also where
// they are others for a kind of task or in a channel.
func (o *offerer) settles(look *capacity.Outlook, c workspace.Clone, own environment.RunChoice) {
	name := c.Repo
	repo, _ := o.policy.Allowed(name)
	usual := o.policy.Settle(tasks.Task{Repo: name}, own)
	found, notes := map[string][]string{}, []string(nil)
	add := func(where string, s rights.Settled) {
		for _, one := range s.Settings {
			if where == "" || !slices.Contains(usual.Settings, one) {
				found[one.Name] = append(found[one.Name], where+one.Value+" of "+one.Of)
			}
		}
		for _, t := range slices.Concat(s.Before, s.After) {
			if where == "" || !slices.Contains(slices.Concat(usual.Before, usual.After), t) {
				found["operator"] = append(found["operator"], where+"for "+t.For)
			}
		}
		notes = append(notes, s.Notes...)
	}
	add("", usual)
	kinds := slices.Concat(slices.Collect(maps.Keys(own.Models)),
		slices.Collect(maps.Keys(repo.Environment.Models)))
	slices.Sort(kinds)
	for _, kind := range slices.Compact(kinds) {
		add(kind+": ", o.policy.Settle(tasks.Task{Repo: name, Kind: kind}, own))
	}
	for _, id := range slices.Sorted(maps.Keys(o.policy.Channels)) {
		add("in "+id+": ", o.policy.Settle(tasks.Task{Repo: name, Channel: id}, own))
	}
	slices.Sort(notes)
	for _, note := range slices.Compact(notes) {
		look.Miss(store.Warning, note, "Runs do not use it.", "Name another one on the base branch.")
	}
	look.Add("model", found["model"]...)
	look.Add("effort", found["effort"]...)
	look.Add("directory", found["directory"]...)
	set := usual.Setting("directory")
	if why := place.Missing(c.Dir, set.Value); why != "" {
		look.Miss(store.Warning, fmt.Sprintf("The directory %q of %s: %s.", set.Value, set.Of, why),
			"Runs start in the root.", "Correct it where it is set.")
	}
	look.Add("instructions of the operator", found["operator"]...)
	for _, p := range o.policy.Plugins {
		look.Add("plugin "+p.Repo, p.Names()...)
	}
}

// keeps adds the lock files that the base branch has, and the environment that the next run would use.
func (o *offerer) keeps(
	ctx context.Context, look *capacity.Outlook, c workspace.Clone, d environment.Declaration,
) error {
	if len(d.Setup) == 0 {
		return nil
	}
	id, versions, err := o.declarations.ID(ctx, c, d)
	if err != nil {
		return err
	}
	var locks []string
	for i, name := range d.LockFiles() {
		if versions[i] != "" {
			locks = append(locks, name)
		}
	}
	look.Add("lock files", locks...)
	all, err := workspace.EnvironmentsOf(o.workspace).List()
	if err != nil {
		return err
	}
	said := "none on the worker that was asked: the next run there sets it up"
	for _, e := range all {
		if e.ID == id {
			said = fmt.Sprintf("kept for %s, set up in %s", display.Age(time.Since(e.Created)), tasks.Lasted(e.Took))
		}
	}
	look.Add("environment", said)
	return nil
}

// checks adds the verification commands of the repository.
func (o *offerer) checks(ctx context.Context, look *capacity.Outlook, c workspace.Clone) {
	commands, err := o.publisher.CommandsOf(ctx, c.Repo)
	if err != nil {
		look.Miss(store.Warning, "the checks of the repository cannot be read", o.policy.Redactor.String(err.Error()),
			"")
	}
	look.Add("checks", o.redacted(commands)...)
}

// reach lists what a run reaches.
func reach(e agent.Egress) []string {
	list := slices.Clone(e.Hosts)
	if len(list) == 0 {
		list = []string{cmp.Or(string(e.Mode), "none")}
	}
	for _, host := range e.Private {
		list = append(list, host+" (private)")
	}
	return list
}

// names returns the names of a repository's secrets.
func names(secrets func(repo string) map[string]string, repo string) []string {
	if secrets == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(secrets(repo)))
}

func (o *offerer) redacted(lines []string) (list []string) {
	for _, line := range lines {
		list = append(list, o.policy.Redactor.String(line))
	}
	return list
}

// offerThread names the directories that workers use for offers.
const offerThread = "offer"

// clone makes a clone to look at.
func (o *offerer) clone(ctx context.Context, want workspace.Want) (workspace.Clone, error) {
	c, err := o.workspace.Checkout(ctx, want)
	if errors.Is(err, workspace.ErrNotFound) || errors.Is(err, workspace.ErrAuth) || errors.Is(err, workspace.ErrRef) {
		err = &tasks.InputError{Sentence: o.policy.Redactor.String(fmt.Sprintf("No task can work there: %v.", err))}
	}
	return c, err
}
