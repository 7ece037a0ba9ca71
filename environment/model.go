package environment

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/errand-fleet/errand/internal/argument"
)

// RunChoice is which model the runs of a repository use, and where they start. Whose choice counts is decided
// elsewhere.
type RunChoice struct {
	Model  string            `yaml:"model" help:"The model of runs there (docs/configure.md says which setting counts)."`
	Models map[string]string `yaml:"models" help:"Instead, the model by kind of task, such as review or fix."`
	Effort string            `yaml:"effort" help:"The level of effort of runs there."`
	// File is the one of [Files] that says so.
	File string `yaml:"-"`
	// Directory is one that CheckDirectory accepts.
	Directory string `yaml:"directory" default:"the root" help:"The directory of the repository in which the agent starts (docs/repository.md)."`
}

// Kinds are the kinds of tasks, which may each have a model: of people in Slack and in the chat, of automation, and on
// GitHub.
var Kinds = []string{
	"mention", "chat", "schedule", "hook", "review", "analyze", "comment", "review_response", "check_failure",
	"merge_conflict", "fix", "issue",
}

// For returns the model for a kind of task.
func (m RunChoice) For(kind string) string { return cmp.Or(m.Models[kind], m.Model) }

// CheckDirectory returns what is wrong with the name of a directory of a repository, or "". "." is the root.
func CheckDirectory(name string) string {
	parts := strings.Split(name, "/")
	switch {
	case len(name) > maxValue || strings.ContainsFunc(name, unicode.IsControl) || !utf8.ValidString(name):
		return fmt.Sprintf("%.100q is not the name of a directory", name)
	case !filepath.IsLocal(name) || slices.Contains(parts, ".."):
		return fmt.Sprintf("%.100q is not a directory below the repository's root: write it like services/api", name)
	case slices.ContainsFunc(parts, func(part string) bool { return strings.EqualFold(part, ".git") }):
		return fmt.Sprintf("%.100q is git's own", name)
	}
	return ""
}

// checkedChoice returns m without its invalid parts, and a sentence about each of them.
func (m RunChoice) checkedChoice() (RunChoice, []string) {
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
	if why := CheckDirectory(m.Directory); m.Directory != "" && why != "" {
		wrong, m.Directory = append(wrong, "directory: "+why+"."), ""
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
