package environment

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/errand-fleet/errand/internal/argument"
)

// ModelChoice is which model the runs of a repository use. Whose choice counts is decided elsewhere.
type ModelChoice struct {
	Model  string            `yaml:"model" help:"The model of runs there (docs/configure.md says which setting counts)."`
	Models map[string]string `yaml:"models" help:"Instead, the model by kind of task, such as review or fix."`
	Effort string            `yaml:"effort" help:"The level of effort of runs there."`
}

// Kinds are the kinds of tasks, which may each have a model: of people in Slack and in the chat, of automation, and on
// GitHub.
var Kinds = []string{
	"mention", "chat", "schedule", "hook", "review", "analyze", "comment", "review_response", "check_failure",
	"merge_conflict", "fix", "issue",
}

// For returns the model for a kind of task.
func (m ModelChoice) For(kind string) string { return cmp.Or(m.Models[kind], m.Model) }

// checkedModels returns m without its invalid parts, and a sentence about each of them.
func (m ModelChoice) checkedModels() (ModelChoice, []string) {
	var wrong []string
	refuse := func(key, word string) bool {
		bad := !argument.Valid(word)
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
	maps.DeleteFunc(m.Models, func(kind, word string) bool {
		if !slices.Contains(Kinds, kind) {
			wrong = append(wrong, fmt.Sprintf("models: %.100q is not a kind of task.", kind))
			return true
		}
		return refuse("models: "+kind, word)
	})
	slices.Sort(wrong)
	return m, wrong
}
