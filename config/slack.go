package config

import (
	"fmt"
	"regexp"
	"strconv"
)

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
