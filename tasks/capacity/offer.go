package capacity

import (
	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
)

// Outlook says what a run in a repository would get, and what is missing.
type Outlook struct {
	Repo     string          `json:"repo"`
	Facts    []Fact          `json:"facts"`
	Findings []store.Finding `json:"findings"`
}

// Fact is a thing that a run would get.
type Fact struct {
	Name   string   `json:"name"`
	Values []string `json:"values"`
}

// Add adds a fact.
func (o *Outlook) Add(name string, values ...string) {
	o.Facts = append(o.Facts, Fact{name, append([]string{}, values...)})
}

// Miss adds a finding about what is missing.
func (o *Outlook) Miss(severity store.Severity, what, why, remedy string) {
	o.Findings = append(o.Findings, store.Finding{Severity: severity, What: what, Why: why, Remedy: remedy})
}

// Where is a place where a task can work: a repository or a local directory. If both are empty, it is a scratch
// directory.
type Where struct {
	Repo string `json:"repo,omitempty"`
	Dir  string `json:"dir,omitempty"`

	Outlook bool `json:"outlook,omitempty"` // asks what a run there would get, instead of what the CLI offers
}

// Offer lists the names, such as commands and agents, that people can use in a place.
type Offer struct {
	agent.Offer

	Configured bool `json:"configured"` // the place has its own instructions for the agent, and runs there follow them
}

// CLIError says why the CLI could not be queried.
type CLIError = agent.Error

// OfferReply is a worker's reply. One of its fields is set.
type OfferReply struct {
	Offer   *Offer    `json:"offer,omitempty"`
	Outlook *Outlook  `json:"outlook,omitempty"`
	Refused string    `json:"refused,omitempty"`
	Failed  *CLIError `json:"failed,omitempty"`
}
