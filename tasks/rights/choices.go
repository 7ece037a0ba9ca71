package rights

import (
	"fmt"
	"slices"
	"strings"

	"github.com/errand-fleet/errand/environment"
	"github.com/errand-fleet/errand/internal/argument"
	"github.com/errand-fleet/errand/tasks"
)

// Choices lists the models and efforts that a task may name. An empty list allows any. A task that names none gets
// the fleet's default.
type Choices struct {
	Models  []string
	Efforts []string
}

// check validates the names in a task's options. They become arguments of the CLI, so it allows only what names of
// models and agents look like.
func (c Choices) check(o tasks.Options) error {
	for _, choice := range []struct {
		a, what, name string
		of            []string
	}{{"a", "model", o.Model, c.Models}, {"a", "level of effort", o.Effort, c.Efforts}, {"an", "agent", o.Agent, nil}} {
		switch {
		case choice.name == "":
		case !argument.Valid(choice.name):
			return &tasks.InputError{Sentence: fmt.Sprintf("%q is not the name of %s %s.", choice.name,
				choice.a, choice.what)}
		case len(choice.of) > 0 && !slices.Contains(choice.of, choice.name):
			return &tasks.InputError{Sentence: fmt.Sprintf("The %s %s is not available here. Choose %s.",
				choice.what, choice.name, strings.Join(choice.of, ", "))}
		}
	}
	return nil
}

// checkDirectory validates the directory in which a task wants its agent to start.
func checkDirectory(t tasks.Task) error {
	if t.Options.Directory == "" {
		return nil
	}
	why := environment.CheckDirectory(t.Options.Directory)
	if t.Repo == "" {
		why = fmt.Sprintf("The directory %.100q needs a repository: name one", t.Options.Directory)
	}
	if why != "" {
		return &tasks.InputError{Sentence: why + "."}
	}
	return nil
}
