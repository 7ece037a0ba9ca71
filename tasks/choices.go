package tasks

import (
	"fmt"
	"slices"
	"strings"
)

// Choices are what a task may ask for by name. What is empty is not restricted; a task that names nothing gets the fleet's own.
type Choices struct {
	Models  []string
	Efforts []string
}

// check finds what a task may not ask for.
func (c Choices) check(o Options) error {
	for _, choice := range []struct {
		what, name string
		of         []string
	}{{"model", o.Model, c.Models}, {"level of effort", o.Effort, c.Efforts}} {
		if choice.name != "" && len(choice.of) > 0 && !slices.Contains(choice.of, choice.name) {
			return &InputError{Sentence: fmt.Sprintf("The %s %s is not one that can be asked for here: choose %s.",
				choice.what, choice.name, strings.Join(choice.of, ", "))}
		}
	}
	return nil
}
