package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/errand-fleet/errand/environment"
	"github.com/errand-fleet/errand/internal/hostlist"
	"github.com/errand-fleet/errand/internal/pattern"
)

// Routing is the content of errand.yaml. It holds no secrets. Its fields and those of their types are the table of the
// keys: docs/settings.md and the hints at wrong names are made of their tags.
type Routing struct {
	Repositories map[string]Repository       `yaml:"repositories" help:"The repositories that errand works on, by owner/name. Without this section: all that its GitHub identity can access, none of them trusted."`
	Channels     map[string]Channel          `yaml:"channels" help:"The repository for Slack messages that name none, by channel ID."`
	People       map[string]Person           `yaml:"people" help:"The accounts of people, by names that you choose: console, costs, command line and posts use them. All accounts of a person share their budgets, limits and rights."`
	MCP          map[string]Server           `yaml:"mcp" help:"MCP servers for the agent, by name (docs/mcp.md)."`
	Rules        []Rule                      `yaml:"rules" help:"A list of rules for the agents' tool calls, in addition to the run's profile. The first matching rule decides a call (docs/configure.md)."`
	Options      Options                     `yaml:"options" help:"What a request can choose. Other names are refused. Without a list: all that the CLI accepts."`
	Instructions string                      `yaml:"instructions" help:"A text for the agents of all runs, before that of repositories and channels (docs/configure.md)."`
	Plugins      []Plugin                    `yaml:"plugins" help:"Directories of workers with skills, commands and agents for all runs (docs/configure.md)."`
	Egress       hostlist.List               `yaml:"egress" default:"all presets" help:"The hosts that runs in a sandbox reach, in addition to the model: a list of names, *.domain, host:port and presets, or any, none or learn; or both as allow: and private:. Default: all presets (docs/environment.md)."`
	Registries   []Registry                  `yaml:"registries" help:"A list of private package registries, from which runs read with a credential that they do not have (docs/environment.md)."`
	Credentials  []Credential                `yaml:"credentials" help:"A list of credentials for the model instead of one in the environment, the preferred ones first (docs/models.md)."`
	Prices       map[string]map[string]Price `yaml:"prices" help:"What models cost in US dollars per million tokens, where it is not Anthropic's list price, by provider and by name or pattern of the model (docs/models.md)."`
	Limits       Limits                      `yaml:"limits" help:"The number of tasks that run at once in the whole fleet. 0: only the slots of the workers limit them."`
	Budgets      Budgets                     `yaml:"budgets" help:"The maximum costs in US dollars at list price. Days are in UTC. 0: no budget."`
	Slack        SlackPeople                 `yaml:"slack" help:"Permissions in Slack. Without people and teams every full member of the app's own workspace can ask; with either of them only those people can."`
	GitHub       GitHubPeople                `yaml:"github" help:"Permissions on GitHub, in addition to those of people with write access."`
	Login        Login                       `yaml:"login" help:"How people log in to the console, by OpenID Connect or GitHub's OAuth (docs/security.md)."`
	Roles        []Grant                     `yaml:"roles" help:"A list of what people may do at the console. The highest role counts. Without this section the people of a trusted proxy are admins."`
	Schedules    map[string]Schedule         `yaml:"schedules" help:"Tasks that errand starts at set times, by name (docs/automation.md)."`
	Hooks        map[string]Hook             `yaml:"hooks" help:"Addresses at which other programs start tasks with signed requests, by the last part of their path (docs/automation.md)."`
	Webhooks     map[string]Webhook          `yaml:"webhooks" help:"Programs that errand tells, with a signed request, when a task has ended, by name (docs/automation.md)."`

	// Variables that errand.yaml reads, as {{env "NAME"}} or env:NAME.
	Variables []string `yaml:"-"`
}

// Repository configures a repository.
type Repository struct {
	Trusted bool   `yaml:"trusted" default:"false" help:"What executes in the repository's configuration of the CLI counts: settings, hooks, servers, shell in skills. Its instructions count in any case (docs/repository.md)."`
	Base    string `yaml:"base" default:"the default branch" help:"The branch to start from, and the base of pull requests. Instructions and settings come from it only."`
	Profile string `yaml:"profile" default:"write" help:"The highest profile of runs there: write or read. With results it is read."`
	Results string `yaml:"results" help:"The Slack channel for results. The repository is then only read, and nothing is written on GitHub."`
	Open    bool   `yaml:"open" default:"false" help:"People in Slack whose GitHub account is unknown can ask errand to read it."`
	Pool    string `yaml:"pool" default:"default" help:"The pool of the workers that run its tasks."`

	Instructions string `yaml:"instructions" help:"A text for the agents of runs there, after its own instructions."`

	environment.Declaration `yaml:",inline"` // wins over the repository's own

	Secrets map[string]RepositorySecret `yaml:"secrets" help:"Variables for its set-up."`
}

// The values of Repository.Profile.
const (
	ProfileWrite = "write"
	ProfileRead  = "read"
)

// Channel configures a Slack channel.
type Channel struct {
	Repository string `yaml:"repository" help:"The owner/name for mentions that name no repository."`
	Private    bool   `yaml:"private" default:"false" help:"Answers about all private repositories may be posted there, and not only about its own."`

	Instructions string `yaml:"instructions" help:"A text for the agents of runs that are asked for there."`
	Model        string `yaml:"model" help:"The model of these runs, before that of the repository."`
	Effort       string `yaml:"effort" help:"Their level of effort."`
}

// Plugin is a directory with skills, commands and agents for all runs.
type Plugin struct {
	Path   string `yaml:"path" help:"The directory: absolute. It has skills, commands or agents, as a plugin of the CLI, or is a skill with its SKILL.md."`
	SHA256 string `yaml:"sha256" help:"The checksum of its files. A worker does not start with others."`
}

// Person is one person's accounts. Either may be empty.
type Person struct {
	Slack  string `yaml:"slack" help:"The member ID, U… or W…, which the profile in Slack shows."`
	GitHub string `yaml:"github" help:"The login."`
	Email  string `yaml:"email" help:"The address at the login to the console, or the name that a trusted proxy states."`
}

// Repository looks up a repository, ignoring case as GitHub does.
func (r Routing) Repository(name string) (Repository, bool) {
	for key, repo := range r.Repositories {
		if strings.EqualFold(key, name) {
			return repo, true
		}
	}
	return Repository{}, false
}

// trimHost removes the forge's host from the names of repositories, so that github.com/acme/api and acme/api are the
// same. It returns the names that are listed both with and without the host.
func (r Routing) trimHost(host string) (twice []string) {
	trim := func(name string) string {
		if first, rest, found := strings.Cut(name, "/"); found && host != "" && strings.EqualFold(first, host) &&
			strings.Contains(rest, "/") {
			return rest
		}
		return name
	}
	for name, repo := range maps.Clone(r.Repositories) {
		if short := trim(name); short != name {
			if _, listed := r.Repository(short); listed {
				twice = append(twice, short)
			}
			delete(r.Repositories, name)
			r.Repositories[short] = repo
		}
	}
	for id, channel := range r.Channels {
		channel.Repository = trim(channel.Repository)
		r.Channels[id] = channel
	}
	for name, s := range r.Schedules {
		s.Repository = trim(s.Repository)
		r.Schedules[name] = s
	}
	for name, h := range r.Hooks {
		h.Repository = trim(h.Repository)
		r.Hooks[name] = h
	}
	return twice
}

// parseRouting reads errand.yaml as nodes, which have the lines of its values, and decodes those.
func parseRouting(p *Problems, file string, data []byte) (Routing, *yaml.Node) {
	var r Routing
	for _, m := range readVariable.FindAllSubmatch(data, -1) {
		r.Variables = append(r.Variables, string(m[1])+string(m[2]))
	}
	var root yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(data))
	err := dec.Decode(&root)
	if errors.Is(err, io.EOF) {
		return r, nil // nothing but comments
	}
	if err == nil {
		err = root.Decode(&r)
	}
	if _, ok := errors.AsType[*yaml.TypeError](err); err != nil && !ok { // form reports errors of types
		addSyntax(p, file, data, err)
		return Routing{}, nil
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		p.add(file, "holds more than one document", "remove the line --- and merge what follows it")
	}
	v := routingCheck{p, file, root.Content[0]}
	before := len(*p)
	v.form(v.root, reflect.TypeOf(r))
	if err != nil && len(*p) == before {
		addSyntax(p, file, data, err)
	}
	for _, check := range []func(Routing){
		v.repositories, v.guidance, v.plugins, v.egress, v.registries, v.credentials, v.prices, v.results, v.channels,
		v.people, v.servers, v.rules, v.options, v.limits, v.budgets, v.slack, v.github, v.login, v.roles, v.schedules,
		v.hooks, v.webhooks,
	} {
		check(r)
	}
	return r, v.root
}

// routingCheck adds problems with the line of their value.
type routingCheck struct {
	p    *Problems
	file string
	root *yaml.Node
}

func (v routingCheck) add(what, remedy string, path ...string) {
	p := v.problem(what, remedy, path)
	if !v.p.Has(v.at(p.Line)) { // otherwise the line could not be read, so do not report what is missing from it
		*v.p = append(*v.p, p)
	}
}

// fullName describes the name of a repository, perhaps with a host and groups.
var fullName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)*/[A-Za-z0-9._-]+$`)

// idForm describes the IDs or logins of a kind of account.
type idForm struct {
	*regexp.Regexp
	what, remedy string
}

var (
	channelID = idForm{
		regexp.MustCompile(`^[CGD][A-Z0-9]+$`), "the id of a channel",
		"write the id that the channel's details show, like C0123ABCD",
	}
	userID = idForm{
		regexp.MustCompile(`^[UW][A-Z0-9]+$`), "the id of a user",
		"write the member id that the profile shows, like U0123ABCD",
	}
	teamID = idForm{
		regexp.MustCompile(`^[TE][A-Z0-9]+$`), "the id of a workspace",
		"write the id in the workspace's address in a browser, like T0123ABCD",
	}
	botID = idForm{
		regexp.MustCompile(`^B[A-Z0-9]+$`), "the id of a bot", "write the bot_id of its messages, like B0123ABCD",
	}
	login = idForm{regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]*(\[bot\])?$`), "a login", "write it without @"}
)

// id reports an ID of another form.
func (v routingCheck) id(id string, form idForm, path ...string) {
	if !form.MatchString(id) {
		v.add(fmt.Sprintf("is %q, which is not %s", id, form.what), form.remedy, path...)
	}
}

func (v routingCheck) repositories(r Routing) {
	seen := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(r.Repositories)) {
		path := []string{"repositories", name}
		if !fullName.MatchString(name) {
			v.add("is not the name of a repository", "write it as owner/name", path...)
		}
		if twin, ok := seen[strings.ToLower(name)]; ok {
			v.add("is the same repository as "+twin, "keep one of them; GitHub does not mind upper and lower case",
				path...)
		}
		seen[strings.ToLower(name)] = name
		if profile := r.Repositories[name].Profile; !slices.Contains([]string{"", ProfileWrite, ProfileRead}, profile) {
			v.add(fmt.Sprintf("must be `write` or `read`, not %q", profile), "", append(path, "profile")...)
		}
		v.branch(r.Repositories[name].Base, append(path, "base"))
		if name := r.Repositories[name].Pool; name != "" && !pool.MatchString(name) {
			v.add(fmt.Sprintf("is %q, which is not the name of a pool", name), poolForm, append(path, "pool")...)
		}
		for variable, secret := range r.Repositories[name].Secrets {
			if why := environment.CheckName(variable); why != "" {
				v.add("cannot be used: "+why, "choose another name", append(path, "secrets", variable)...)
			}
			if !secretSource.MatchString(secret.From) { // without the text, which may be the secret itself
				v.add("does not say where its value is",
					"write env:NAME for a variable of the worker, file:/path for a file, or command:PROGRAM ARGUMENTS",
					append(path, "secrets", variable)...)
			}
			if secret.Expose != "" && secret.Expose != ExposeAgent {
				v.add("can be exposed to `agent` only", "write `expose: agent`, or remove the line",
					append(path, "secrets", variable)...)
			}
		}
	}
}

func (v routingCheck) egress(r Routing) {
	for _, problem := range r.Egress.Problems() {
		v.add("is invalid: "+strings.TrimSuffix(problem, "."),
			"correct it; docs/environment.md lists what can be declared", "egress")
	}
}

func (v routingCheck) channels(r Routing) {
	for _, id := range slices.Sorted(maps.Keys(r.Channels)) {
		path := []string{"channels", id}
		if !channelID.MatchString(id) {
			v.add("is not "+channelID.what, channelID.remedy, path...)
		}
		name := r.Channels[id].Repository
		if one := r.Channels[id]; name == "" && (one.Private || one.Instructions+one.Model+one.Effort != "") {
			continue
		}
		if !fullName.MatchString(name) {
			v.add("has no repository of the form owner/name", "add `repository: owner/name`", path...)
			continue
		}
		if _, ok := r.Repository(name); !ok && len(r.Repositories) > 0 {
			v.add(fmt.Sprintf("is %q, which is not among the repositories", name),
				"list it under repositories or correct its spelling", append(path, "repository")...)
		}
	}
}

func (v routingCheck) people(r Routing) {
	seen, names := map[string]string{}, map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(r.People)) {
		person := r.People[name]
		path := []string{"people", name}
		if twin, ok := names[strings.ToLower(name)]; ok {
			v.add("is the same name as "+twin, "give each person one name; upper and lower case make no difference",
				path...)
		}
		names[strings.ToLower(name)] = name
		if person == (Person{}) {
			v.add("has no account", "add `slack: U…`, `github: login` and `email: …`", path...)
		}
		if person.Slack != "" {
			v.id(person.Slack, userID, append(path, "slack")...)
		}
		if person.GitHub != "" {
			v.id(person.GitHub, login, append(path, "github")...)
		}
		for _, id := range []string{person.Slack, strings.ToLower(person.GitHub), strings.ToLower(person.Email)} {
			if twin, ok := seen[id]; ok && id != "" {
				v.add(fmt.Sprintf("is the same person as %s by %s", twin, id), "give each account to one person",
					path...)
			}
			seen[id] = name
		}
	}
}

// line returns the line of a path of keys and list positions (from 1), or of the last part found; 0: there is no file.
func line(n *yaml.Node, path []string) int {
	if n == nil {
		return 0
	}
	at := n.Line
	for _, key := range path {
		if n.Kind == yaml.AliasNode {
			n = n.Alias
		}
		if i, err := strconv.Atoi(key); err == nil && n.Kind == yaml.SequenceNode && i <= len(n.Content) {
			n = n.Content[i-1]
			at = n.Line
			continue
		}
		pairs := slices.Collect(slices.Chunk(n.Content, 2)) // key and value
		i := slices.IndexFunc(pairs, func(pair []*yaml.Node) bool { return pair[0].Value == key })
		if n.Kind != yaml.MappingNode || i < 0 {
			break
		}
		at, n = pairs[i][0].Line, pairs[i][1]
	}
	return at
}

// patterns checks what names several repositories or people.
func (v routingCheck) patterns(patterns, path []string) {
	for _, p := range patterns {
		if !pattern.Check(p) {
			v.add(fmt.Sprintf("has %q, which is not a pattern", p), "write a name, or * for any part of it", path...)
		}
	}
}
