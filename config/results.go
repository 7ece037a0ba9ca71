package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// results refuses what is no channel, and makes repositories read-only whose results are told elsewhere.
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

// Results are the Slack channels where it is told what comes of repositories, by "owner/name".
func (r Routing) Results() map[string]string {
	told := map[string]string{}
	for name, repo := range r.Repositories {
		if repo.Results != "" {
			told[name] = repo.Results
		}
	}
	return told
}

// checkResults refuses results that nobody could read.
func (c *Config) checkResults(p *Problems) {
	if s := c.Slack; s.BotToken+s.SigningSecret+s.AppToken != "" { // one that is begun has problems of its own
		return
	}
	for _, name := range slices.Sorted(maps.Keys(c.Routing.Results())) {
		p.add(c.Paths.File+": repositories."+name+".results", "names a Slack channel although Slack is not configured",
			"set SLACK_BOT_TOKEN, and SLACK_SIGNING_SECRET or SLACK_APP_TOKEN (docs/slack.md), or remove it to have results told on GitHub")
	}
}
