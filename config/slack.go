package config

import (
	"fmt"
	"strconv"
)

// SlackPeople is who may do what in Slack.
type SlackPeople struct {
	Approvers []string `yaml:"approvers"` // user ids: they may stop, repeat and approve what others have asked for
}

func (v routingCheck) slack(r Routing) {
	for i, id := range r.Slack.Approvers {
		if !userID.MatchString(id) {
			v.add(fmt.Sprintf("is %q, which is not the id of a user", id), "write the member id that the profile shows, like U0123ABCD",
				"slack", "approvers", strconv.Itoa(i+1))
		}
	}
}
