package wire

import (
	"cmp"
	"maps"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/errand-fleet/errand/config"
	"github.com/errand-fleet/errand/internal/legible"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/automation"
	"github.com/errand-fleet/errand/web"
)

// configuration returns what the console shows of the configuration. It contains no secret.
func configuration(c config.Config) *web.Configuration {
	shown := &web.Configuration{
		File: c.Paths.File, Tables: sections(c.Routing), Published: c.Published(), Shared: config.Shared,
	}
	for _, s := range c.Settings() {
		if n := len(shown.Groups); n == 0 || shown.Groups[n-1].Title != s.Group {
			shown.Groups = append(shown.Groups, web.SettingGroup{Title: s.Group})
		}
		one := web.Setting{Name: s.Name, Value: s.Value, Origin: "default", About: s.Brief()}
		switch {
		case s.Given:
			one.Origin = "environment"
		case s.Value == "":
			one.Origin = "not set"
		case s.Default == "":
			one.Origin = "computed"
		}
		if s.Secret && s.Value != "" {
			one.Value = "set, hidden"
		}
		group := &shown.Groups[len(shown.Groups)-1]
		group.Settings = append(group.Settings, one)
	}
	return shown
}

// sections returns errand.yaml as tables. Only limits and budgets are there without an entry, because no limit is one.
func sections(r config.Routing) []web.Table {
	b, all := r.Budgets, []web.Table{}
	add := func(title string, columns []string, rows [][]string) {
		if len(rows) > 0 {
			all = append(all, web.Table{Title: title, Columns: columns, Rows: rows})
		}
	}
	add("Runs at once", []string{"of", "at most"}, [][]string{
		{"each repository", number(r.Limits.Repository)},
		{"each person", number(r.Limits.User)},
		{"each model credential", number(r.Limits.Credential)},
	})
	add("Budgets", []string{"of", "at most"}, [][]string{
		{"each task", dollars(b.Task)},
		{"each person a day", dollars(b.User)},
		{"each channel a day", dollars(b.Channel)},
		{"each repository a day", dollars(b.Repository)},
		{"the whole fleet a day", dollars(b.Day)},
	})
	add("Repositories", []string{"repository", "own settings", "branch", "profile", "results", "pool", "open"},
		rows(r.Repositories, func(one config.Repository) []string {
			profile := either(one.Results == "", config.ProfileWrite, config.ProfileRead)
			return []string{
				either(one.Trusted, "trusted", "not trusted"), either(one.Base != "", one.Base, "default"),
				either(one.Profile != "", one.Profile, profile), one.Results, tasks.PoolName(one.Pool),
				either(one.Open, "to all", "no"),
			}
		}))
	add("Channels", []string{"channel", "repository", "private repositories"},
		rows(r.Channels, func(one config.Channel) []string {
			return []string{one.Repository, either(one.Private, "all", "only this one")}
		}))
	add("People", []string{"name", "Slack", "GitHub", "e-mail"}, rows(r.People, func(one config.Person) []string {
		return []string{one.Slack, one.GitHub, one.Email}
	}))
	add("Schedules", []string{"schedule", "times", "repository", "profile"},
		rows(r.Schedules, func(one config.Schedule) []string {
			return []string{one.When, one.Repository, either(one.Profile != "", one.Profile, config.ProfileWrite)}
		}))
	add("Hooks", []string{"hook", "repository", "profile", "requests an hour"},
		rows(r.Hooks, func(one config.Hook) []string {
			return []string{
				one.Repository, either(one.Profile != "", one.Profile, config.ProfileRead),
				strconv.Itoa(either(one.Rate > 0, one.Rate, automation.DefaultPerHour)),
			}
		}))
	add("Webhooks", []string{"webhook", "endings", "repositories"}, rows(r.Webhooks, func(one config.Webhook) []string {
		return []string{listOrAll(one.Endings), listOrAll(one.Repositories)}
	}))
	add("Credentials for the model", []string{"name", "kind", "weight", "at most a day", "repositories"},
		credentialRows(r.Credentials))
	add("Prices of a million tokens", []string{"provider", "models", "input", "output"}, priceRows(r.Prices))
	var grants [][]string
	for _, g := range r.Roles {
		grants = append(grants, []string{g.Role, list(g.People), list(g.Groups), listOrAll(g.Repositories)})
	}
	add("Roles", []string{"role", "people", "groups", "repositories"}, grants)
	return append(all, access(r)...)
}

func credentialRows(credentials []config.Credential) (found [][]string) {
	for _, c := range credentials {
		weight := strconv.FormatFloat(cmp.Or(c.Weight, 1), 'f', -1, 64)
		found = append(found, []string{c.Name, c.Kind(), weight, dollars(c.DailyCap), listOrAll(c.Repositories)})
	}
	return found
}

func number(n int) string { return either(n > 0, strconv.Itoa(n), "no limit") }

func dollars(usd float64) string { return either(usd > 0, legible.Dollars(usd), "no limit") }

// listOrAll names the entries of a list of which an empty one means all.
func listOrAll(entries []string) string { return either(len(entries) > 0, list(entries), "all") }

func priceRows(prices map[string]map[string]config.Price) (list [][]string) {
	for _, provider := range slices.Sorted(maps.Keys(prices)) {
		for _, pattern := range slices.Sorted(maps.Keys(prices[provider])) {
			p := prices[provider][pattern]
			list = append(list, []string{provider, pattern, legible.Dollars(*p.Input), legible.Dollars(*p.Output)})
		}
	}
	return list
}

// access returns the sections about what agents and requests may do.
func access(r config.Routing) (all []web.Table) {
	pairs := func(title string, cells ...string) {
		t := web.Table{Title: title, Columns: []string{"setting", "value"}}
		for pair := range slices.Chunk(cells, 2) {
			if pair[1] != "" {
				t.Rows = append(t.Rows, pair)
			}
		}
		if len(t.Rows) > 0 {
			all = append(all, t)
		}
	}
	pairs("Login", "issuer", r.Login.Issuer, "client", r.Login.ClientID, "scopes", list(r.Login.Scopes),
		"claim of groups", r.Login.Groups, "claim of the account", r.Login.Account)
	pairs("Options of requests", "models", list(r.Options.Models), "efforts", list(r.Options.Efforts))
	s := r.Slack
	pairs("Slack", "people", list(s.People), "workspaces", list(s.Teams), "channels", list(s.Channels), "bots",
		list(s.Bots), "approvers", list(s.Approvers), "people without a GitHub account", string(s.Unmapped),
		"link accounts", either(s.Link, "yes", ""))
	pairs("Forks on GitHub", "label", r.GitHub.Label, "reviews a day",
		either(r.GitHub.Runs > 0, strconv.Itoa(r.GitHub.Runs), ""), "bots", list(r.GitHub.Bots))
	rules := web.Table{Title: "Rules for tools", Columns: []string{"tool", "input", "action", "reason"}}
	for _, one := range r.Rules {
		rules.Rows = append(rules.Rows, []string{
			one.Tool, either(one.Input != "", one.Input, "anything"), one.Action, one.Reason,
		})
	}
	if len(rules.Rows) > 0 {
		all = append(all, rules)
	}
	servers := web.Table{
		Title: "MCP servers", Columns: []string{"server", "kind", "program or host", "profiles"},
		Rows: rows(r.MCP, func(one config.Server) []string {
			// Arguments, variables, headers and the rest of the URL may hold credentials.
			place := path.Base(one.Command)
			if u, err := url.Parse(one.URL); one.URL != "" {
				place = either(err == nil, u.Hostname(), "")
			}
			return []string{one.Kind(), place, either(len(one.Profiles) > 0, list(one.Profiles), config.ProfileWrite)}
		}),
	}
	if len(servers.Rows) > 0 {
		all = append(all, servers)
	}
	return all
}

// rows returns a row for each entry, by name.
func rows[T any](entries map[string]T, cells func(T) []string) (all [][]string) {
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		all = append(all, append([]string{name}, cells(entries[name])...))
	}
	return all
}

func list(words []string) string { return strings.Join(words, ", ") }

func either[T any](first bool, a, b T) T {
	if first {
		return a
	}
	return b
}
