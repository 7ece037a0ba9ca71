package config

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/errand-fleet/errand/internal/argument"
	"github.com/errand-fleet/errand/tasks/policy"
)

// Options are the values that a request may choose. Empty = anything that the CLI accepts. Models also bounds runs
// that name none.
type Options struct {
	Models  []string `yaml:"models" help:"Models. They also bound runs that name none, and their sub-agents."`
	Efforts []string `yaml:"efforts" help:"Efforts."`
}

func (v routingCheck) options(r Routing) {
	for _, o := range []struct {
		key   string
		names []string
	}{{"models", r.Options.Models}, {"efforts", r.Options.Efforts}} {
		for _, name := range o.names {
			if !argument.Valid(name) {
				v.add(fmt.Sprintf("has %q", name), "write names that the CLI takes, like opus or high",
					"options", o.key)
			}
		}
	}
}

// Limits bounds concurrent tasks in the whole fleet. 0 = no limit.
type Limits struct {
	Repository int `yaml:"repository" default:"no limit" help:"In each repository."`
	User       int `yaml:"user" default:"no limit" help:"Of each person."`
}

// Budgets bounds the cost of tasks in US dollars at list price. 0 = no budget. Days are UTC.
type Budgets struct {
	Task       float64 `yaml:"task" default:"no budget" help:"Of a task, even if it asks for more."`
	User       float64 `yaml:"user" default:"no budget" help:"Of each person a day."`
	Channel    float64 `yaml:"channel" default:"no budget" help:"Of each channel a day."`
	Repository float64 `yaml:"repository" default:"no budget" help:"Of each repository a day."`
	Day        float64 `yaml:"day" default:"no budget" help:"Of the whole fleet a day."`
	Contact    string  `yaml:"contact" help:"Who can raise budgets, for refusals."`
}

// maxBudget keeps sums of millionths exact.
const maxBudget = 1e9

func (v routingCheck) limits(r Routing) {
	for _, l := range []struct {
		name string
		n    int
	}{{"repository", r.Limits.Repository}, {"user", r.Limits.User}} {
		if l.n < 0 {
			v.add("is not a number of runs", "write the number of concurrent runs, like 3, or 0 for no limit",
				"limits", l.name)
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
	} {
		if !(amount.usd >= 0 && amount.usd <= maxBudget) { // written so that it also holds for .nan
			v.add("is not an amount", "write US dollars, like 20 or 2.5, or 0 for no budget", "budgets", amount.name)
		}
	}
	if strings.ContainsAny(strings.TrimSpace(b.Contact), "\r\n") || len(b.Contact) > 200 {
		v.add("is not one short line", "write who can raise a budget, like #platform or ann@example.com",
			"budgets", "contact")
	}
}

// Rule decides calls of the agents' tools. Package agent checks whether the tool exists.
type Rule struct {
	Tool   string `yaml:"tool" help:"The tool, or a pattern of names."`
	Input  string `yaml:"input" default:"anything" help:"A pattern of the path, command, URL or query. In paths * stops at a slash, and ** does not."`
	Action string `yaml:"action" help:"What happens: allow, deny, or ask a person."`
	Reason string `yaml:"reason" help:"What the agent is told, or the person who decides."`
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
		case v.resultsChannel(repo.Results, path):
		case repo.Profile == ProfileWrite:
			v.add("cannot be combined with profile: write", "remove results, or set profile: read", path...)
		}
		repo.Profile = ProfileRead
		r.Repositories[name] = repo
	}
}

// Results returns the Slack channels for the results of repositories, by repository name.
func (r Routing) Results() map[string]string {
	channels := map[string]string{}
	for name, repo := range r.Repositories {
		if repo.Results != "" {
			channels[name] = repo.Results
		}
	}
	return channels
}

// checkResults refuses results in Slack if Slack is not configured.
func (c *Config) checkResults(p *Problems) {
	if s := c.Slack; s.BotToken+s.SigningSecret+s.AppToken != "" { // checkSlack reports a partial configuration
		return
	}
	const problem, remedy = "names a Slack channel although Slack is not configured",
		"set SLACK_BOT_TOKEN, and SLACK_SIGNING_SECRET or SLACK_APP_TOKEN (docs/connect.md), or remove it"
	for _, name := range slices.Sorted(maps.Keys(c.Routing.Results())) {
		*p = append(*p, c.Problem(problem, remedy+" to have results posted on GitHub", "repositories", name, "results"))
	}
	for _, whose := range slices.Sorted(maps.Keys(c.Routing.AutomationResults())) {
		kind, name, _ := strings.Cut(whose, " ")
		*p = append(*p, c.Problem(problem, remedy, kind+"s", name, "results"))
	}
}

// GitHubPeople sets who may use errand on GitHub, in addition to people with write access to a repository.
type GitHubPeople struct {
	Label string   `yaml:"label" default:"errand" help:"The label that has an issue worked on and the pull request of a fork reviewed, if someone with write access adds it."`
	Bots  []string `yaml:"bots" help:"Logins of other bots that can use mentions and commands."`
}

// maxLabel is GitHub's limit for the name of a label, in characters.
const maxLabel = 50

// botLogin matches the login of a bot. No person's account can have such a name.
var botLogin = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]*\[bot\]$`)

func (v routingCheck) github(r Routing) {
	if l := r.GitHub.Label; strings.ContainsAny(l, "\r\n") || utf8.RuneCountInString(l) > maxLabel {
		v.add("must be a label of at most 50 characters in one line", "", "github", "label")
	}
	for i, bot := range r.GitHub.Bots {
		if !botLogin.MatchString(bot) {
			v.add(fmt.Sprintf("must be the login of a bot like \"renovate[bot]\", not %q", bot), "", "github", "bots",
				strconv.Itoa(i+1))
		}
	}
}

// SlackPeople sets permissions in Slack. Without People and Teams every full member of the app's own workspace may use
// errand; with either of them only the listed ones may.
type SlackPeople struct {
	People    []string `yaml:"people" help:"IDs of people who can ask, including guests and people from other workspaces."`
	Teams     []string `yaml:"teams" help:"IDs of workspaces whose full members can ask. Your own counts only if it is listed."`
	Channels  []string `yaml:"channels" default:"all" help:"IDs of channels where errand works, in addition to direct messages."`
	Bots      []string `yaml:"bots" help:"IDs of other bots that can ask."`
	Approvers []string `yaml:"approvers" help:"IDs of people who can stop, retry and approve other people's tasks."`

	Unmapped policy.Unmapped `yaml:"unmapped" default:"read or all" help:"What people without a known GitHub account can ask for: read (repositories with open: true), refuse or all. The default is read where people: or link: makes accounts known."`
	Link     bool            `yaml:"link" default:"false" help:"People can link their account to one on GitHub by /errand link."`
}

// Unmapped returns what people in Slack may do whose GitHub account is unknown. If no account can be known and the
// operator has not decided, they may do everything.
func (r Routing) Unmapped() policy.Unmapped {
	known := r.Slack.Link
	for _, person := range r.People {
		known = known || person.GitHub != ""
	}
	if known {
		return cmp.Or(r.Slack.Unmapped, policy.UnmappedRead)
	}
	return cmp.Or(r.Slack.Unmapped, policy.UnmappedAll)
}

func (v routingCheck) slack(r Routing) {
	s := r.Slack
	known := []policy.Unmapped{"", policy.UnmappedRead, policy.UnmappedRefuse, policy.UnmappedAll}
	if !slices.Contains(known, s.Unmapped) {
		v.add(fmt.Sprintf("must be `read`, `refuse` or `all`, not %q", s.Unmapped), "", "slack", "unmapped")
	}
	for _, list := range []struct {
		key  string
		ids  []string
		form idForm
	}{
		{"people", s.People, userID},
		{"teams", s.Teams, teamID},
		{"channels", s.Channels, channelID},
		{"bots", s.Bots, botID},
		{"approvers", s.Approvers, userID},
	} {
		for i, id := range list.ids {
			v.id(id, list.form, "slack", list.key, strconv.Itoa(i+1))
		}
	}
}

// Server configures an MCP server with tools for the agent. Args, Env and Headers may contain {{.Thread}}, {{.Repo}}
// and {{.Run}}. Env and Headers may also contain {{env "NAME"}} for secrets, which are read when the agent's runner is
// created.
type Server struct {
	Command  string            `yaml:"command" help:"The program that each run starts: an absolute path, or a name on PATH."`
	Args     []string          `yaml:"args" hidden:"all" help:"Its arguments, which may contain {{.Repo}}, {{.Run}} and {{.Thread}}."`
	Env      map[string]string `yaml:"env" hidden:"all" help:"Its environment. {{env \"NAME\"}} is a secret from the worker's environment."`
	URL      string            `yaml:"url" hidden:"host" help:"The server to connect to, instead of a program."`
	Type     string            `yaml:"type" default:"sse if the path ends in /sse, else http" help:"How to connect to it: http (streamable HTTP), or sse, its predecessor."`
	Headers  map[string]string `yaml:"headers" hidden:"all" help:"The headers for it, with secrets as in env."`
	Profiles []string          `yaml:"profiles" default:"write" help:"The profiles of the runs that get it."`
}

var (
	serverName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)
	// credential matches names of variables and headers that usually hold a credential.
	credential = regexp.MustCompile(`(?i)(authorization|token|secret|password|api[_-]?key)$`)
)

func (v routingCheck) servers(r Routing) {
	for _, name := range slices.Sorted(maps.Keys(r.MCP)) {
		path := []string{"mcp", name}
		if !serverName.MatchString(name) || name == "errand" {
			v.add("cannot be the name of a server",
				"write lower-case letters, digits and dashes, at most 32, and not errand, which is taken", path...)
		}
		s := r.MCP[name]
		if s.URL != "" {
			v.remote(s, path)
		} else {
			v.stdio(s, path)
		}
		for _, p := range s.Profiles {
			if p != ProfileWrite && p != ProfileRead {
				v.add(fmt.Sprintf("must be `write` or `read`, not %q", p), "runs on untrusted input get no servers",
					append(path, "profiles")...)
			}
		}
		v.literal(s.Env, append(path, "env"))
		v.literal(s.Headers, append(path, "headers"))
	}
}

// Registry configures a package registry. Bearer and Basic may contain {{env "NAME"}} for secrets, which are read when
// the agent's runner is created.
type Registry struct {
	Host         string   `yaml:"host" help:"The host, or host:port."`
	Bearer       string   `yaml:"bearer" hidden:"all" help:"The token as {{env \"NAME\"}}."`
	Basic        string   `yaml:"basic" hidden:"all" help:"Instead, user:password as {{env \"NAME\"}}."`
	Repositories []string `yaml:"repositories" default:"all" help:"Patterns of owner/name whose runs may use it."`
	Paths        []string `yaml:"paths" default:"all" help:"Paths that may be read, with everything below them."`
}

func (v routingCheck) registries(r Routing) {
	seen := map[string]bool{}
	for i, one := range r.Registries {
		path := []string{"registries", strconv.Itoa(i + 1)}
		host := strings.ToLower(one.Host)
		if seen[host] {
			v.add("is the second one of its host", "keep one of them", path...)
		}
		seen[host] = true
		for key, value := range map[string]string{"bearer": one.Bearer, "basic": one.Basic} {
			if value != "" && !strings.Contains(value, "{{") {
				v.add(inPlain, inPlainRemedy, append(path, key)...)
			}
		}
	}
}

func (v routingCheck) stdio(s Server, path []string) {
	switch {
	case len(s.Headers) > 0 || s.Type != "":
		v.add("has headers or a type and no url", "keep command, args and env, or url, type and headers", path...)
	case s.Command == "":
		v.add("has neither command nor url",
			"add `command: …` for a program to start, or `url: …` for a server to connect to", path...)
	case !filepath.IsAbs(s.Command) && s.Command != filepath.Base(s.Command):
		v.add(fmt.Sprintf("is %q, which would be looked for in each checkout", s.Command),
			"write an absolute path, or a name to find on PATH", append(path, "command")...)
	}
}

func (v routingCheck) remote(s Server, path []string) {
	u, err := url.Parse(s.URL)
	switch {
	case s.Command != "" || len(s.Args)+len(s.Env) > 0:
		v.add("has a url and also a command, args or env", "keep command, args and env, or url, type and headers",
			path...)
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil:
		v.add("is not an absolute http or https URL without a user", "write it like https://mcp.example.com/mcp",
			append(path, "url")...)
	}
	if s.Type != "" && s.Type != "http" && s.Type != "sse" {
		v.add(fmt.Sprintf("must be http or sse, not %q", s.Type), "leave it out if the path says which",
			append(path, "type")...)
	}
}

// A credential in errand.yaml, and what to do about it.
const (
	inPlain       = "holds a credential"
	inPlainRemedy = "put it into the environment as NAME and write {{env \"NAME\"}} in its place"
)

// literal refuses a credential in errand.yaml, because the redactor would not know it.
func (v routingCheck) literal(values map[string]string, path []string) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if value := values[name]; credential.MatchString(name) && value != "" && !strings.Contains(value, "{{") {
			v.add(inPlain, inPlainRemedy, slices.Concat(path, []string{name})...)
		}
	}
}
