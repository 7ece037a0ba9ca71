package environment

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
)

// ModelChoice is which model the runs of a repository use. Whose choice counts is decided elsewhere.
type ModelChoice struct {
	Model  string            `yaml:"model" help:"The model of runs there (docs/configure.md says which setting counts)."`
	Models map[string]string `yaml:"models" help:"Instead, the model by kind of task, such as review or fix."`
	Effort string            `yaml:"effort" help:"The level of effort of runs there."`
}

// For returns the model for a kind of task.
func (m ModelChoice) For(kind string) string { return cmp.Or(m.Models[kind], m.Model) }

var modelWord = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@\[\]-]{0,199}$`)

// ModelWord reports whether a text has the form of a model or a level of effort in the CLI's arguments.
func ModelWord(word string) bool { return modelWord.MatchString(word) }

// checkedModels returns m without its invalid parts, and a sentence about each of them.
func (m ModelChoice) checkedModels() (ModelChoice, []string) {
	var wrong []string
	refuse := func(key, word string) bool {
		bad := !ModelWord(word)
		if bad {
			wrong = append(wrong, fmt.Sprintf("%s: %.100q is not a name that the CLI takes.", key, word))
		}
		return bad
	}
	for key, word := range map[string]*string{"model": &m.Model, "effort": &m.Effort} {
		if *word != "" && refuse(key, *word) {
			*word = ""
		}
	}
	m.Models = maps.Clone(m.Models)
	maps.DeleteFunc(m.Models, func(kind, word string) bool { return refuse("models: "+kind, word) })
	slices.Sort(wrong)
	return m, wrong
}
