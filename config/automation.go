package config

import (
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"github.com/errand-fleet/errand/internal/refname"
)

// Automation is what all have in common that starts tasks without a person.
type Automation struct {
	Repository string  `yaml:"repository" help:"The owner/name, if any."`
	Branch     string  `yaml:"branch" default:"the repository's base" help:"The branch to start from."`
	Profile    string  `yaml:"profile" default:"write; of hooks read" help:"The profile: write or read."`
	Budget     float64 `yaml:"budget" default:"budgets.task" help:"The maximum US dollars for each task."`
	Results    string  `yaml:"results" help:"The Slack channel for the answers. Without one they are not posted."`
}

// Schedule configures tasks that errand starts by itself at set times.
type Schedule struct {
	When   string `yaml:"when" help:"The times: every day at 07:00, every monday and friday at 18:30, every hour, or cron's five fields; then a time zone, by default UTC."`
	Prompt string `yaml:"prompt" help:"What to do."`

	Automation `yaml:",inline"`
}

// Hook configures an address at which other programs start tasks with signed requests.
type Hook struct {
	Secret   EnvReference `yaml:"secret" hidden:"all" help:"The secret that signs requests, as {{env \"NAME\"}} from the front doors' environment."`
	Template string       `yaml:"template" help:"What makes the prompt of a request's JSON, in the syntax of Go's text/template."`
	Rate     int          `yaml:"rate" default:"60" help:"The requests an hour."`

	Automation `yaml:",inline"`
}

// automations returns the schedules and hooks by kind and name, such as "schedule nightly".
func (r Routing) automations() map[string]Automation {
	all := map[string]Automation{}
	for name, s := range r.Schedules {
		all["schedule "+name] = s.Automation
	}
	for name, h := range r.Hooks {
		all["hook "+name] = h.Automation
	}
	return all
}

// Webhook configures a receiver that gets a signed request when a task ends.
type Webhook struct {
	URL          string       `yaml:"url" hidden:"host" help:"The address that gets a POST."`
	Secret       EnvReference `yaml:"secret" hidden:"all" help:"The secret that signs it, as for hooks."`
	Repositories []string     `yaml:"repositories" default:"all" help:"Patterns of owner/name whose tasks count."`
}

// EnvReference is {{env "NAME"}}: a variable with a secret.
type EnvReference string

var envReference = regexp.MustCompile(`^\{\{ *env +"([A-Za-z_][A-Za-z0-9_]*)" *\}\}$`)

// Variable returns the name of the variable, or "".
func (e EnvReference) Variable() string {
	if m := envReference.FindStringSubmatch(strings.TrimSpace(string(e))); m != nil {
		return m[1]
	}
	return ""
}

// minSigningSecret is as short as the secret of a hook or webhook may be, in bytes.
const minSigningSecret = 16

// Read returns a secret that signs requests. The error shows nothing of it.
func (e EnvReference) Read(getenv func(string) string) (Secret, error) {
	secret := strings.TrimSpace(getenv(e.Variable()))
	switch {
	case secret == "":
		return "", fmt.Errorf("the variable %s is not set", e.Variable())
	case len(secret) < minSigningSecret:
		return "", fmt.Errorf("the variable %s has less than %d characters", e.Variable(), minSigningSecret)
	}
	return Secret(secret), nil
}

// SigningSecrets returns the secrets of hooks and webhooks by their place in errand.yaml.
func (r Routing) SigningSecrets() map[string]EnvReference {
	all := map[string]EnvReference{}
	for name, h := range r.Hooks {
		all["hooks."+name+".secret"] = h.Secret
	}
	for name, w := range r.Webhooks {
		all["webhooks."+name+".secret"] = w.Secret
	}
	return all
}

// maxRate of a hook, in tasks an hour.
const maxRate = 100_000

func (v routingCheck) hooks(r Routing) {
	for _, name := range slices.Sorted(maps.Keys(r.Hooks)) {
		h, path := r.Hooks[name], []string{"hooks", name}
		v.automation(r, h.Automation, path)
		v.signingSecret(h.Secret, path)
		if _, err := template.New(name).Parse(h.Template); err != nil {
			v.add("cannot be read: "+err.Error(), "see docs/automation.md", append(path, "template")...)
		} else if strings.TrimSpace(h.Template) == "" {
			v.add("has no template", "add `template: …`, which says what to do with {{.field}} of a request", path...)
		}
		if h.Rate < 0 || h.Rate > maxRate {
			v.add(fmt.Sprintf("must be from 1 to %d tasks an hour", maxRate), "", append(path, "rate")...)
		}
	}
}

func (v routingCheck) signingSecret(secret EnvReference, path []string) {
	switch {
	case secret == "":
		v.add("has no secret", "add `secret: '{{env \"NAME\"}}'`, and set NAME at front doors", path...)
	case secret.Variable() == "":
		v.add(inPlain, inPlainRemedy, append(path, "secret")...)
	}
}

func (v routingCheck) webhooks(r Routing) {
	for _, name := range slices.Sorted(maps.Keys(r.Webhooks)) {
		w, path := r.Webhooks[name], []string{"webhooks", name}
		v.automationName(path)
		v.signingSecret(w.Secret, path)
		if u, err := url.Parse(w.URL); err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
			v.add("has no URL that errand can call", "write it like https://example.com/errand", append(path, "url")...)
		}
		v.patterns(w.Repositories, append(path, "repositories"))
	}
}

// resultsChannel reports a channel that results cannot go to.
func (v routingCheck) resultsChannel(channel string, path []string) (wrong bool) {
	wrong = channel != "" && (!channelID.MatchString(channel) || strings.HasPrefix(channel, "D"))
	if wrong {
		v.add(fmt.Sprintf("is %q, which is not %s", channel, channelID.what), channelID.remedy, path...)
	}
	return wrong
}

// AutomationResults returns the Slack channels for the results, by "schedule NAME" or "hook NAME".
func (r Routing) AutomationResults() map[string]string {
	channels := map[string]string{}
	for whose, a := range r.automations() {
		if a.Results != "" {
			channels[whose] = a.Results
		}
	}
	return channels
}

// branch reports a name that no branch has, or a ref such as the head of a pull request, which may be from a fork.
func (v routingCheck) branch(name string, path []string) {
	if !refname.Branch(name) {
		v.add(fmt.Sprintf("is %q, which is not the name of a branch", name), "write it without refs/heads/, like main",
			path...)
	}
}

// Lists reports whether answers about a private repository may be posted in a Slack channel. The results of schedules
// and hooks are answers about their own repositories.
func (r Routing) Lists(channel, repo string) bool {
	c := r.Channels[channel]
	known, _ := r.Repository(repo)
	listed := c.Private || strings.EqualFold(c.Repository, repo) || known.Results != "" && known.Results == channel
	for _, a := range r.automations() {
		listed = listed || a.Results != "" && a.Results == channel && strings.EqualFold(a.Repository, repo)
	}
	return listed
}

// nameForm describes the names of schedules and hooks, which are part of IDs, and of webhooks.
var nameForm = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)

// automationName reports a path whose last part cannot be a name.
func (v routingCheck) automationName(path []string) {
	if !nameForm.MatchString(path[len(path)-1]) {
		v.add("cannot be a name", "write lower-case letters, digits and dashes, at most 32, with a letter first",
			path...)
	}
}

func (v routingCheck) schedules(r Routing) {
	for _, name := range slices.Sorted(maps.Keys(r.Schedules)) {
		s, path := r.Schedules[name], []string{"schedules", name}
		v.automation(r, s.Automation, path)
		if _, err := s.Times(); err != nil {
			v.add(err.Error(), "write it like `every weekday at 07:00 Europe/Berlin` or `0 7 * * 1-5 Europe/Berlin`",
				append(path, "when")...)
		}
		if strings.TrimSpace(s.Prompt) == "" {
			v.add("has no prompt", "add `prompt: …`, which says what to do", path...)
		}
	}
}

// automation reports what is wrong with the part that schedules and hooks have in common.
func (v routingCheck) automation(r Routing, a Automation, path []string) {
	v.automationName(path)
	_, listed := r.Repository(a.Repository)
	if a.Repository != "" && !fullName.MatchString(a.Repository) {
		v.add(fmt.Sprintf("is %q, which is not the name of a repository", a.Repository), "write it as owner/name",
			append(path, "repository")...)
	} else if a.Repository != "" && !listed && len(r.Repositories) > 0 {
		v.add(fmt.Sprintf("is %q, which is not among the repositories", a.Repository),
			"list it under repositories or correct its spelling", append(path, "repository")...)
	}
	v.branch(a.Branch, append(path, "branch"))
	if a.Branch != "" && a.Repository == "" {
		v.add("is of no repository", "add `repository: owner/name`", append(path, "branch")...)
	}
	if !slices.Contains([]string{"", ProfileWrite, ProfileRead}, a.Profile) {
		v.add(fmt.Sprintf("must be `write` or `read`, not %q", a.Profile), "", append(path, "profile")...)
	}
	if !(a.Budget >= 0 && a.Budget <= maxBudget) { // written so that it also holds for .nan
		v.add("is not an amount", "write US dollars, like 2 or 0.5", append(path, "budget")...)
	}
	v.resultsChannel(a.Results, append(path, "results"))
}
