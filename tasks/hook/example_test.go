package hook

import (
	"fmt"

	"github.com/errand-fleet/errand/agent"
)

// A hook is made from the settings of errand.yaml. A template that cannot be read is an error.
func ExampleNew() {
	_, err := New(Config{Hooks: []Hook{
		{
			Name: "alerts", Secret: "a-long-random-secret", Template: "An alert fired. Find its cause.\n{{.title",
			Repo: "acme/api", Profile: agent.Read,
		},
	}})
	fmt.Println(err)
	// Output: read template of hook alerts: template: alerts:2: unclosed action
}
