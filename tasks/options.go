package tasks

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// notInBranch matches what git check-ref-format forbids.
var notInBranch = regexp.MustCompile(`[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/\.|\.lock(/|$)|^[-/.]|[/.]$`)

// ParseBranch checks the name of a branch that a person wrote. The error is an *InputError.
func ParseBranch(name string) (string, error) {
	if notInBranch.MatchString(name) || strings.HasPrefix(name, "refs/") {
		return "", &InputError{Sentence: fmt.Sprintf("%q is not the name of a branch.", name)}
	}
	return name, nil
}

// ParseBudget reads an amount in US dollars that a person wrote, such as 2.50 or $2.50. The error is an *InputError.
func ParseBudget(amount string) (float64, error) {
	usd, err := strconv.ParseFloat(strings.TrimPrefix(amount, "$"), 64)
	if err != nil || !(usd > 0 && usd < 1e6) {
		return 0, &InputError{Sentence: fmt.Sprintf("%q is not a budget: write it in US dollars, like 2.50.", amount)}
	}
	return usd, nil
}

// ParseTimeout reads a length of time that a person wrote, such as 30m or 2h. The error is an *InputError.
func ParseTimeout(length string) (time.Duration, error) {
	d, err := time.ParseDuration(length)
	if err != nil || d <= 0 {
		return 0, &InputError{Sentence: fmt.Sprintf("%q is not a length of time: write it like 30m or 2h.", length)}
	}
	return d, nil
}

// Choices lists the models and efforts that a task may name. An empty list allows any. A task that names none gets
// the fleet's default.
type Choices struct {
	Models  []string
	Efforts []string
}

// check validates the names in a task's options.
func (c Choices) check(o Options) error {
	for _, choice := range []struct {
		what, name string
		of         []string
	}{{"model", o.Model, c.Models}, {"level of effort", o.Effort, c.Efforts}} {
		if choice.name != "" && len(choice.of) > 0 && !slices.Contains(choice.of, choice.name) {
			return &InputError{Sentence: fmt.Sprintf("The %s %s is not available here. Choose %s.",
				choice.what, choice.name, strings.Join(choice.of, ", "))}
		}
	}
	return nil
}
