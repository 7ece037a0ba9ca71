package config

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// GitHubPeople is who may ask for something on GitHub besides the people who may write to a repository, and what outside authors get there.
type GitHubPeople struct {
	Label string   `yaml:"label"`     // who gives it to a pull request from a fork, and may write there, lets its head be reviewed; empty = errand
	Runs  int      `yaml:"fork_runs"` // on pull requests of one outside author a day (UTC); 0 = 5
	Bots  []string `yaml:"bots"`      // logins of other bots that may ask
}

// maxLabel is how long GitHub lets the name of a label be, in characters.
const maxLabel = 50

// botLogin is what the login of a bot looks like: no account of a person's can be called so.
var botLogin = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]*\[bot\]$`)

func (v routingCheck) github(r Routing) {
	if l := r.GitHub.Label; strings.ContainsAny(l, "\r\n") || utf8.RuneCountInString(l) > maxLabel {
		v.add("is not the name of a label", "write at most 50 characters in one line, like errand", "github", "label")
	}
	if r.GitHub.Runs < 0 {
		v.add("is not a number of runs", "write how many there may be a day, like 5", "github", "fork_runs")
	}
	for i, bot := range r.GitHub.Bots {
		if !botLogin.MatchString(bot) {
			v.add(fmt.Sprintf("is %q, which is not the login of a bot", bot), "write it as its comments show it and with [bot] behind it, like \"renovate[bot]\"", "github", "bots", strconv.Itoa(i+1))
		}
	}
}
