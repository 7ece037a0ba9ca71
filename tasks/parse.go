package tasks

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/errand-fleet/errand/internal/refname"
)

// SplitRepositories reads repositories that a person wrote as a list: the main one and the further ones, with commas
// between them.
func SplitRepositories(list string) (repo string, also []string) {
	for i, name := range strings.Split(list, ",") {
		if name = strings.TrimSpace(name); i == 0 {
			repo = name
		} else if name != "" {
			also = append(also, name)
		}
	}
	return repo, also
}

// ParseBranch checks the name of a branch that a person wrote. The error is an *InputError.
func ParseBranch(name string) (string, error) {
	if !refname.Branch(name) {
		return "", &InputError{Sentence: fmt.Sprintf("%q is not the name of a branch.", name)}
	}
	return name, nil
}

// ParseBudget reads an amount in US dollars that a person wrote, such as 2.50 or $2.50. The error is an *InputError.
func ParseBudget(amount string) (float64, error) {
	usd, err := strconv.ParseFloat(strings.TrimPrefix(amount, "$"), 64)
	if err != nil || !(usd > 0 && usd < 1e6) {
		return 0, &InputError{Sentence: fmt.Sprintf("%q is not a budget. Write it in US dollars, such as 2.50.",
			amount)}
	}
	return usd, nil
}

// ParseTimeout reads a length of time that a person wrote, such as 30m or 2h. The error is an *InputError.
func ParseTimeout(length string) (time.Duration, error) {
	d, err := time.ParseDuration(length)
	if err != nil || d <= 0 {
		return 0, &InputError{Sentence: fmt.Sprintf("%q is not a duration. Write it as 30m or 2h.", length)}
	}
	return d, nil
}
