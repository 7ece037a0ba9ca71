package slack

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

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
		r.ref, err = branch(value)
	case "model":
		r.options.Model = value
	case "effort":
		r.options.Effort = value
	case "budget":
		r.options.MaxUSD, err = dollars(value)
	case "timeout":
		r.options.Limit, err = limit(value)
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

// notInBranch is what git check-ref-format forbids.
var notInBranch = regexp.MustCompile(`[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/\.|\.lock(/|$)|^[-/.]|[/.]$`)

func branch(name string) (string, error) {
	if notInBranch.MatchString(name) || strings.HasPrefix(name, "refs/") {
		return "", wrong("%q is not the name of a branch.", name)
	}
	return name, nil
}

func dollars(amount string) (float64, error) {
	usd, err := strconv.ParseFloat(strings.TrimPrefix(amount, "$"), 64)
	if err != nil || !(usd > 0 && usd < 1e6) {
		return 0, wrong("%q is not a budget: write it in US dollars, like 2.50.", amount)
	}
	return usd, nil
}

func limit(length string) (time.Duration, error) {
	d, err := time.ParseDuration(length)
	if err != nil || d <= 0 {
		return 0, wrong("%q is not a length of time: write it like 30m or 2h.", length)
	}
	return d, nil
}
