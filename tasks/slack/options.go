package slack

import (
	"fmt"
	"strings"

	"github.com/errand-fleet/errand/tasks"
)

// optionNames are the options that a message may begin with.
const optionNames = "repo, branch, model, effort, budget, timeout and plan"

// cutOptions cuts the options off a message that begins with them: [repo=o/r model=opus plan]. A bracket without options is text, such as
// [WIP].
func cutOptions(text string) (options []string, rest string) {
	end := closingBracket(text)
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

// closingBracket returns the index of the bracket that closes the first one, -1 if the text does not begin with a bracket. Names of models
// may contain brackets.
func closingBracket(text string) int {
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
		return inputError("I do not understand the option %q. The options are %s.", option, optionNames)
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
		err = inputError("There is no option %q. The options are %s.", key, optionNames)
	}
	return err
}

// inputError is a mistake of the person who asked, in a sentence for them.
func inputError(format string, args ...any) error {
	return &tasks.InputError{Sentence: fmt.Sprintf(format, args...)}
}
