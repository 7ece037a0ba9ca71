package config

import (
	"strings"
	"unicode/utf8"
)

// Forks is what outside authors get on GitHub.
type Forks struct {
	Label string `yaml:"label"`     // who gives it to a pull request from a fork, and may write there, lets its head be reviewed; empty = errand
	Runs  int    `yaml:"fork_runs"` // on pull requests of one outside author a day (UTC); 0 = 5
}

// maxLabel is how long GitHub lets the name of a label be, in characters.
const maxLabel = 50

func (v routingCheck) forks(r Routing) {
	if l := r.GitHub.Label; strings.ContainsAny(l, "\r\n") || utf8.RuneCountInString(l) > maxLabel {
		v.add("is not the name of a label", "write at most 50 characters in one line, like errand", "github", "label")
	}
	if r.GitHub.Runs < 0 {
		v.add("is not a number of runs", "write how many there may be a day, like 5", "github", "fork_runs")
	}
}
