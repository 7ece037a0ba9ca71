package slack

import (
	"fmt"
	"strings"

	"github.com/errand-fleet/errand/tasks"
)

// known are the options that a message may begin with, as people are told of them.
const known = "repo, branch, model, effort, budget, timeout and plan"

// none is the repository of a request that wants none: it works in a scratch directory.
const none = "none"

// cutOptions takes the options off a message that begins with them: [repo=o/r model=opus plan]. A bracket without any is text, such as
// [WIP].
func cutOptions(text string) (options []string, rest string) {
	end := bracket(text)
	if end < 0 {
		return nil, text
	}
	words := strings.Fields(strings.ReplaceAll(text[1:end], ",", " "))
	for _, w := range words {
		if w == "plan" && len(words) == 1 || strings.Contains(w, "=") {
			return words, strings.TrimSpace(text[end+1:])
		}
	}
	return nil, text
}

// bracket is where the bracket ends that a text begins with, below 0 if it begins with none. Names of models have brackets of their own.
func bracket(text string) int {
	depth := 0
	for i, r := range text {
		switch r {
		case '[':
			depth++
		case ']':
			depth--
		case '\n':
			return -1
		}
		if depth == 0 {
			if i == 0 {
				return -1
			}
			return i
		}
	}
	return -1
}

// set reads one option into a request.
func (r *request) set(option string) error {
	key, value, _ := strings.Cut(option, "=")
	key = strings.ToLower(key)
	if (value == "") != (key == "plan") {
		return wrong("I do not know what to make of the option %q. The options are %s.", option, known)
	}
	var err error
	switch key {
	case "repo":
		r.repo = value
	case "branch":
		r.ref, err = tasks.ParseBranch(value)
	case "model":
		r.options.Model = value
	case "effort":
		r.options.Effort = value
	case "budget":
		r.options.MaxUSD, err = tasks.ParseBudget(value)
	case "timeout":
		r.options.Limit, err = tasks.ParseTimeout(value)
	case "plan":
		r.options.Plan = true
	default:
		err = wrong("There is no option %q. The options are %s.", key, known)
	}
	return err
}

func wrong(format string, args ...any) error {
	return &tasks.InputError{Sentence: fmt.Sprintf(format, args...)}
}
