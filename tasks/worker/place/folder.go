package place

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/environment"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/rights"
)

// directory is the name of the setting that says where agents start.
const directory = "directory"

// Start returns the directory in which the agent starts.
func (p Place) Start() string { return filepath.Join(p.Dir, p.Folder) }

// Began returns the main repository and the directory of it in which the agent starts, for a later run of the thread;
// "" without one.
func (p Place) Began() string {
	if p.Clone.Repo == "" {
		return ""
	}
	return strings.ToLower(p.Clone.Repo) + ":" + cmp.Or(p.gone, path.Clean(p.Folder))
}

// StartIn returns the place with the directory in which the agent of a task starts: that of the request, or the one in
// which the conversation began (see Began), or the one that is set for the repository. An *InputError refuses a
// directory of the request that the clone does not have, or that would leave rules behind (see rules). Another one that
// the clone does not have is left out with a note, and so is the one in which the conversation began: the agent itself
// may have moved it, and later requests still name it.
func (p Place) StartIn(t tasks.Task, began string) (Place, error) {
	before, kept := strings.CutPrefix(began, strings.ToLower(t.Repo)+":")
	set := p.Settled.Setting(directory)
	chosen := set
	if t.Options.Directory != "" {
		chosen = rights.Setting{Name: directory, Value: t.Options.Directory, Of: "the request"}
	} else if kept && before != path.Clean(set.Value) && Missing(p.Dir, before) == "" {
		chosen = rights.Setting{Name: directory, Value: before, Of: "the thread"}
	}
	if chosen.Value == "" {
		return p, nil
	}
	p.Settled.Put(chosen)
	folder, why := path.Clean(chosen.Value), Missing(p.Dir, chosen.Value)
	cannot := fmt.Sprintf("The agent cannot start in %q of %s: %s.", chosen.Value, t.Repo, why)
	asked := t.Options.Directory != "" && (!kept || before != folder)
	if rules := p.rules(set.Value); asked && why == "" && rules != "" && folder != path.Dir(path.Dir(rules)) {
		return p, &tasks.InputError{Option: tasks.OptionDirectory, Sentence: fmt.Sprintf(
			"The agent cannot start in %q of %s: the repository is trusted, and its rules in %s hold only for agents "+
				"that start there. Ask without a directory, or set it as `directory` in %s.",
			chosen.Value, t.Repo, rules, cmp.Or(p.Own.File, environment.File))}
	}
	switch {
	case why != "" && asked:
		return p, &tasks.InputError{
			Option: tasks.OptionDirectory, Sentence: cannot + " Name another directory, or . for the root.",
		}
	case why != "":
		p.Notes = append(p.Notes, cannot+" So it starts in the root. The directory is that of "+chosen.Of+".")
		p.Settled.Put(rights.Setting{Name: directory})
		if t.Options.Directory != "" {
			p.gone = folder
		}
	case folder != ".":
		p.Folder = folder
		p.About += fmt.Sprintf("\n\nYou start in the directory %s of the clone. The whole clone is in %s.",
			agent.QuoteName(p.Folder), p.Dir)
	}
	return p, nil
}

// rules returns the name of the file with the CLI's own rules and hooks that hold where nobody asks for another
// directory than the one that is set; "" if there are none, or if the repository's are not in force. The CLI reads
// those of the directory in which it starts, and no others (seen on 2.1.332), so a request that names a directory could
// switch them off.
func (p Place) rules(set string) string {
	if !p.Trusted || p.Clone.Repo == "" {
		return ""
	}
	start := path.Clean(set)
	if Missing(p.Dir, start) != "" {
		start = "."
	}
	for _, name := range []string{"settings.json", "settings.local.json"} {
		name = path.Join(start, ".claude", name)
		if _, err := os.Lstat(filepath.Join(p.Dir, name)); !errors.Is(err, fs.ErrNotExist) {
			return name
		}
	}
	return ""
}

// Missing says why an agent cannot start in a directory of a clone, as a clause for people; "" if it can. No part of
// the name may be a link, which could lead out of the clone, or cannot be listed: below that the workspace does not
// replace the configuration of the CLI, and an earlier run may have written it.
func Missing(clone, name string) string {
	root, err := os.OpenRoot(clone)
	if err != nil {
		return "the clone cannot be read"
	}
	defer root.Close()
	at := ""
	for part := range strings.SplitSeq("./"+name, "/") {
		at = path.Join(at, part)
		info, err := root.Lstat(at)
		switch {
		case err != nil: // what is above it can be read
			return "the clone does not have it"
		case info.Mode()&fs.ModeSymlink != 0:
			return "it is behind a symbolic link"
		case !info.IsDir():
			return "it is not a directory"
		case info.Mode()&0o500 != 0o500:
			return "it cannot be read"
		}
	}
	return ""
}

// instructions returns those of the repository in Clone. Those about everything in the directory in which the agent
// starts come at once, as the CLI would load those of the directories above it.
func (p Place) instructions() (all []agent.Instructions) {
	for _, one := range p.Instructions {
		one.Set = one.AtOnce(p.startsBelow)
		all = append(all, one)
	}
	return all
}

// startsBelow reports whether the agent starts in a directory that one of these patterns names, or below it.
func (p Place) startsBelow(patterns []string) bool {
	return p.Folder != "" && slices.ContainsFunc(patterns, func(pattern string) bool {
		return strings.HasSuffix(pattern, "/**") && agent.Paths(pattern).MatchString(p.Folder)
	})
}
