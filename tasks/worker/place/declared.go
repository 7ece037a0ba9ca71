package place

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/environment"
	"github.com/errand-fleet/errand/internal/untrusted"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks/rights"
	"github.com/errand-fleet/errand/workspace"
)

// maxNotes bounds how many parts of a file people are told about one by one.
const maxNotes = 10

// Declared is the environment that a run in a clone gets.
type Declared struct {
	Environment environment.Declaration
	// Notes are what is wrong with the declaration, for the followers of the task.
	Notes []string
	// Lacking says what the worker lacks for it.
	Lacking string
	// Own is the model that the base branch wants.
	Own environment.RunChoice
}

// Declarations reads what base branches declare. It is safe for concurrent use.
type Declarations struct {
	Workspace *workspace.Workspace
	Store     *store.Store
	Egress    agent.Egress // of the fleet
	Mise      bool         // the machine has mise, which installs versions of tools
}

// Least returns what a run gets that executes no commands.
func (l *Declarations) Least(ctx context.Context, repo rights.Repository, c workspace.Clone) (Declared, error) {
	own, notes, err := l.read(ctx, c, environment.Parse, environment.Files)
	reach := environment.Declaration{}.Reach(repo.Environment.Egress, l.Egress)
	return Declared{Environment: environment.Declaration{Egress: reach}, Notes: notes, Own: own.RunChoice}, err
}

// Of returns the environment that the base branch declares, under the operator's. Without a set-up by either, that of a
// devcontainer.json counts.
func (l *Declarations) Of(ctx context.Context, repo rights.Repository, c workspace.Clone) (Declared, error) {
	var found Declared
	own, notes, err := l.read(ctx, c, environment.Parse, environment.Files)
	if err != nil {
		return Declared{}, err
	}
	found.Notes, found.Own = notes, own.RunChoice
	if own.Setup == nil && repo.Environment.Setup == nil {
		dev, notes, err := l.read(ctx, c, environment.ParseDevcontainer, environment.DevcontainerFiles)
		if err != nil {
			return Declared{}, err
		}
		dev.Egress = own.Egress
		own, found.Notes = dev.Under(own), append(found.Notes, notes...)
	}
	found.Environment = own.Under(repo.Environment)
	found.Environment.Egress = own.Reach(repo.Environment.Egress, l.Egress)

	tools, err := l.tools(ctx, c, found.Environment)
	if err != nil {
		return Declared{}, err
	}
	if len(tools) > 0 && l.Mise {
		found.Environment = found.Environment.WithMise()
	} else if len(tools) > 0 {
		found.Lacking = "The repository names versions of tools (" + strings.Join(tools, ", ") +
			"), and the worker has no mise to install them."
	}
	return found, nil
}

// tools returns where the base branch or the operator names versions of tools.
func (l *Declarations) tools(
	ctx context.Context, c workspace.Clone, d environment.Declaration,
) (named []string, err error) {
	versions, err := workspace.EnvironmentsOf(l.Workspace).Versions(ctx, c, environment.ToolFiles)
	if err != nil {
		return nil, err
	}
	for i, name := range environment.ToolFiles {
		if versions[i] != "" {
			named = append(named, name)
		}
	}
	if len(d.Tools) > 0 {
		named = append(named, "tools")
	}
	return named, nil
}

// read reads a declaration from the first of some files that the base branch has, and returns notes of what is wrong
// with it.
func (l *Declarations) read(
	ctx context.Context, c workspace.Clone, parse func([]byte) (environment.Declaration, []string), names []string,
) (d environment.Declaration, notes []string, err error) {
	name, text, large := names[0], "", false
	for _, other := range names {
		more, fault := l.Workspace.BaseFile(ctx, c, other, environment.MaxFile)
		switch {
		case fault != nil && !errors.Is(fault, workspace.ErrTooLarge):
			return d, nil, fault
		case more == "" && fault == nil: // it does not exist
		case text == "" && !large:
			name, text, large = other, more, fault != nil
		default:
			notes = append(notes, other+" has no effect beside "+name+".")
		}
	}
	if large {
		return d, append(notes, fmt.Sprintf("%s: The file has more than %d KiB, so it is ignored.", name,
			environment.MaxFile>>10)), nil
	}
	if text == "" {
		return d, nil, nil
	}
	d, wrong := parse([]byte(text))
	d.File = name
	for n, one := range wrong {
		if n == maxNotes {
			return d, append(notes, fmt.Sprintf("%s: Further parts that cannot be used: %d.", name, len(wrong)-n)), nil
		}
		notes = append(notes, name+": "+untrusted.Line(one, 300))
	}
	return d, notes, nil
}

// ID returns the ID of the environment that a run in a clone uses, and the versions of the lock files in order; "" for
// one that does not exist.
func (l *Declarations) ID(
	ctx context.Context, c workspace.Clone, d environment.Declaration,
) (id string, versions []string, err error) {
	versions, err = workspace.EnvironmentsOf(l.Workspace).Versions(ctx, c, d.LockFiles())
	if err != nil {
		return "", nil, err
	}
	// The set-up runs what is on the protected branch, so those of other branches are others.
	key := d.Key(c.Repo, append(slices.Clone(versions), c.Protected))
	rebuild, err := l.Store.Rebuilds.Read(ctx, strings.ToLower(c.Repo))
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return "", nil, err
	}
	return rebuild.Name(key), versions, nil
}
