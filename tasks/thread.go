package tasks

import (
	"github.com/errand-fleet/errand/agent"
)

// Thread is what a thread's latest task passes on to its next one, which by default works in the same place with the
// same options.
type Thread struct {
	Latest  string        `json:"latest"` // ID of the latest task
	Repo    string        `json:"repo,omitempty"`
	Also    []string      `json:"repos,omitempty"`
	Ref     string        `json:"ref,omitempty"`
	Profile agent.Profile `json:"profile,omitempty"`
	Options Options       `json:"options,omitzero"` // without Plan, because a reply to a plan asks to carry it out
}
