package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Options are what a request may name for itself. Empty = whatever the CLI takes. Models also bounds runs that name none.
type Options struct {
	Models  []string `yaml:"models"`
	Efforts []string `yaml:"efforts"`
}

// optionName describes a model or an effort in the CLI's arguments.
var optionName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@\[\]-]{0,199}$`)

func (v routingCheck) options(r Routing) {
	for _, o := range []struct {
		key   string
		names []string
	}{{"models", r.Options.Models}, {"efforts", r.Options.Efforts}} {
		for _, name := range o.names {
			if !optionName.MatchString(name) {
				v.add(fmt.Sprintf("has %q", name), "write names that the CLI takes, like opus or high", "options", o.key)
			}
		}
	}
}

// Limits is how many tasks run at once, in all of the fleet. 0 = no limit.
type Limits struct {
	Repository int `yaml:"repository"` // of each repository
	User       int `yaml:"user"`       // of each person who asks
	Credential int `yaml:"credential"` // with each credential for the model
}

// Budgets is what tasks may cost, in US dollars at list price. 0 = no budget. A day is one of UTC.
type Budgets struct {
	Task       float64 `yaml:"task"`       // one task, whatever it asks for itself
	User       float64 `yaml:"user"`       // of each person who asks, a day
	Channel    float64 `yaml:"channel"`    // of each channel in which tasks are asked for, a day
	Repository float64 `yaml:"repository"` // of each repository, a day
	Day        float64 `yaml:"day"`        // of all of the fleet, a day
	Reserve    float64 `yaml:"reserve"`    // what a task that names no maximum is expected to cost; 0 = 1
	Contact    string  `yaml:"contact"`    // who can raise them, told to whoever is refused
}

// maxBudget keeps sums of millionths exact.
const maxBudget = 1e9

func (v routingCheck) limits(r Routing) {
	var written struct {
		Limits map[string]yaml.Node `yaml:"limits"`
	}
	_ = v.root.Decode(&written) // what has another form has been told
	for _, l := range []struct {
		name string
		n    int
	}{{"repository", r.Limits.Repository}, {"user", r.Limits.User}, {"credential", r.Limits.Credential}} {
		// yaml.v3 takes 0.5 for an int and makes it 0, which here would be no limit.
		if value := written.Limits[l.name]; l.n < 0 || value.ShortTag() == "!!float" {
			v.add("is not a number of runs", "write the number of concurrent runs, like 3, or 0 for no limit", "limits", l.name)
		}
	}
}

func (v routingCheck) budgets(r Routing) {
	b := r.Budgets
	for _, amount := range []struct {
		name string
		usd  float64
	}{
		{"task", b.Task},
		{"user", b.User},
		{"channel", b.Channel},
		{"repository", b.Repository},
		{"day", b.Day},
		{"reserve", b.Reserve},
	} {
		if !(amount.usd >= 0 && amount.usd <= maxBudget) { // so that it holds for .nan, too
			v.add("is not an amount", "write US dollars, like 20 or 2.5, or 0 for no budget", "budgets", amount.name)
		}
	}
	if strings.ContainsAny(strings.TrimSpace(b.Contact), "\r\n") || len(b.Contact) > 200 {
		v.add("is not one short line", "write who can raise a budget, like #platform or ann@example.com", "budgets", "contact")
	}
}

// Rule decides calls of the agents' tools. Whether there is such a tool, package agent knows.
type Rule struct {
	Tool   string `yaml:"tool"`   // name of a tool, or a pattern of names
	Input  string `yaml:"input"`  // pattern of what the call is about; empty = anything
	Action string `yaml:"action"` // ActionAllow, ActionDeny or ActionAsk
	Reason string `yaml:"reason"` // told to the agent, or to whoever is asked
}

// The values of Rule.Action.
const (
	ActionAllow = "allow"
	ActionDeny  = "deny"
	ActionAsk   = "ask"
)

func (v routingCheck) rules(r Routing) {
	for i, rule := range r.Rules {
		path := []string{"rules", strconv.Itoa(i + 1)}
		if rule.Tool == "" {
			v.add("has no tool", "add `tool: Bash`, or `tool: \"*\"` for all", path...)
		}
		if !slices.Contains([]string{ActionAllow, ActionDeny, ActionAsk}, rule.Action) {
			v.add(fmt.Sprintf("must be allow, deny or ask, not %q", rule.Action), "", append(path, "action")...)
		}
	}
}

// results refuses invalid channels, and makes repositories with results read-only.
func (v routingCheck) results(r Routing) {
	for _, name := range slices.Sorted(maps.Keys(r.Repositories)) {
		repo, path := r.Repositories[name], []string{"repositories", name, "results"}
		switch {
		case repo.Results == "":
			continue
		case !channelID.MatchString(repo.Results) || strings.HasPrefix(repo.Results, "D"):
			v.add(fmt.Sprintf("is %q, which is not the id of a channel", repo.Results), "write the id that the channel's details show, like C0123ABCD", path...)
		case repo.Profile == ProfileWrite:
			v.add("is told elsewhere, although the profile is write", "remove results, or write profile: read: to a repository with results nothing is written", path...)
		}
		repo.Profile = ProfileRead
		r.Repositories[name] = repo
	}
}

// Results returns the Slack channels for the results of repositories, by repository name.
func (r Routing) Results() map[string]string {
	told := map[string]string{}
	for name, repo := range r.Repositories {
		if repo.Results != "" {
			told[name] = repo.Results
		}
	}
	return told
}

// checkResults refuses results in Slack if Slack is not configured.
func (c *Config) checkResults(p *Problems) {
	if s := c.Slack; s.BotToken+s.SigningSecret+s.AppToken != "" { // one that is begun has problems of its own
		return
	}
	for _, name := range slices.Sorted(maps.Keys(c.Routing.Results())) {
		p.add(c.Paths.File+": repositories."+name+".results", "names a Slack channel although Slack is not configured",
			"set SLACK_BOT_TOKEN, and SLACK_SIGNING_SECRET or SLACK_APP_TOKEN (docs/slack.md), or remove it to have results told on GitHub")
	}
}

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
		v.add("must be a label of at most 50 characters in one line", "", "github", "label")
	}
	if r.GitHub.Runs < 0 {
		v.add("must be the number of runs per day, like 5", "", "github", "fork_runs")
	}
	for i, bot := range r.GitHub.Bots {
		if !botLogin.MatchString(bot) {
			v.add(fmt.Sprintf("must be the login of a bot like \"renovate[bot]\", not %q", bot), "", "github", "bots", strconv.Itoa(i+1))
		}
	}
}

// SlackPeople is who may do what in Slack. Without People and Teams every full member of the app's own workspace may ask; with either of
// them nobody else may.
type SlackPeople struct {
	People    []string `yaml:"people"`    // user ids: they may ask, guests and people of other workspaces among them
	Teams     []string `yaml:"teams"`     // workspace ids: their full members may ask, those of our own only if it is listed
	Channels  []string `yaml:"channels"`  // channel ids: where it may be asked, besides direct messages; empty = everywhere
	Bots      []string `yaml:"bots"`      // bot ids: other bots that may ask
	Approvers []string `yaml:"approvers"` // user ids: they may stop, repeat and approve what others have asked for
}

var (
	teamID = regexp.MustCompile(`^[TE][A-Z0-9]+$`)
	botID  = regexp.MustCompile(`^B[A-Z0-9]+$`)
)

func (v routingCheck) slack(r Routing) {
	s := r.Slack
	for _, list := range []struct {
		key   string
		ids   []string
		form  *regexp.Regexp
		what  string
		write string
	}{
		{"people", s.People, userID, "a user", "write the member id that the profile shows, like U0123ABCD"},
		{"teams", s.Teams, teamID, "a workspace", "write the id in the workspace's address in a browser, like T0123ABCD"},
		{"channels", s.Channels, channelID, "a channel", "write the id that the channel's details show, like C0123ABCD"},
		{"bots", s.Bots, botID, "a bot", "write the bot_id of its messages, like B0123ABCD"},
		{"approvers", s.Approvers, userID, "a user", "write the member id that the profile shows, like U0123ABCD"},
	} {
		for i, id := range list.ids {
			if !list.form.MatchString(id) {
				v.add(fmt.Sprintf("is %q, which is not the id of %s", id, list.what), list.write, "slack", list.key, strconv.Itoa(i+1))
			}
		}
	}
}
