package slack

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/errand-fleet/errand/internal/doctor"
	"github.com/errand-fleet/errand/tasks/intake"
	"github.com/errand-fleet/errand/tasks/slack/app"
)

// maxSkew is how far the clocks may differ without a warning. Requests that are signed 5 minutes away are refused.
const maxSkew = time.Minute

// Diagnose checks that the token has all scopes, that events arrive and that the clocks agree. It calls Slack once, and
// once for each channel for results.
func (s *Source) Diagnose(ctx context.Context) []doctor.Finding {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	me, err := s.client.api.AuthTestContext(ctx)
	switch {
	case code(err) != "":
		return []doctor.Finding{{
			What: "Slack refuses the bot token: " + code(err),
			Why:  "No events can be received, and nothing can be posted.", Fatal: true,
			Remedy: "Install the app to the workspace and set SLACK_BOT_TOKEN to its bot token, xoxb-….",
		}}
	case err != nil:
		return []doctor.Finding{{
			What: "Slack does not answer", Why: err.Error(), Remedy: doctor.Unreachable(err, "SLACK_API_URL"),
			Fatal: true,
		}}
	}
	list := []doctor.Finding{{What: fmt.Sprintf("Slack knows the bot as @%s in %s (%s)", me.User, me.Team, me.TeamID)}}
	list = append(list, granted(me.Header)...)
	list = append(list, s.clock(me.Header)...)
	list = append(list, s.examineResults(ctx)...)
	return append(list, s.arrivals()...)
}

// examineResults checks that the channels for results can be read.
func (s *Source) examineResults(ctx context.Context) (list []doctor.Finding) {
	all := map[string]string{}
	maps.Copy(all, s.others)
	maps.Copy(all, s.results)
	for _, whose := range slices.Sorted(maps.Keys(all)) {
		channel := all[whose]
		_, err := s.client.history(ctx, slack.GetConversationHistoryParameters{ChannelID: channel, Limit: 1})
		switch {
		case err == nil:
			list = append(list, doctor.Finding{What: "Slack: results of " + whose + " go to " + channel})
		case code(err) != "" && !unreadable(err):
			list = append(list, doctor.Finding{
				What: fmt.Sprintf("Slack: results of %s cannot go to %s: %s", whose, channel, code(err)),
				Why:  "They are not posted. They are kept for about a day.",
				Remedy: "Invite the app to that channel, or correct results: in errand.yaml to the id that " +
					"the channel's details show.",
			})
		}
	}
	return list
}

// granted compares the scopes of the token with those that are needed. A proxy may hide Slack's header.
func granted(h http.Header) (list []doctor.Finding) {
	said := h.Get("X-Oauth-Scopes")
	if said == "" {
		return nil
	}
	has := map[string]bool{}
	for name := range strings.SplitSeq(said, ",") {
		has[strings.TrimSpace(name)] = true
	}
	for _, needed := range app.Scopes() {
		if !has[needed.Name] && needed.Use != "" {
			list = append(list, doctor.Finding{
				What: "Slack: the app lacks the scope " + needed.Name, Why: "Without it " + needed.Use + ".",
				Fatal: needed.Must,
				Remedy: "Add it under OAuth & Permissions, or paste the manifest of `enqueue init slack` " +
					"again, and install the app again.",
			})
		}
	}
	return list
}

// clock compares our clock with Slack's.
func (s *Source) clock(h http.Header) []doctor.Finding {
	skew, ok := intake.ClockSkew(h, s.client.now())
	if !ok || skew.Abs() <= maxSkew {
		return nil
	}
	return []doctor.Finding{{
		What:   fmt.Sprintf("the clock is %s away from Slack's", skew.Abs()),
		Why:    "If the difference exceeds 5 minutes, errand rejects every event.",
		Remedy: "Synchronise the clock of the front door's machine, for example with NTP.",
		Fatal:  skew.Abs() >= 5*time.Minute,
	}}
}

// arrivals reports that the last request was refused: the signing secret is wrong, or the request was not Slack's.
func (s *Source) arrivals() []doctor.Finding {
	if !s.listener.inbound.LastRefused() {
		return nil
	}
	return []doctor.Finding{{
		What:   "Slack: the last request had a wrong signature",
		Why:    "If the request came from Slack, errand accepts none of Slack's events.",
		Remedy: "Compare SLACK_SIGNING_SECRET with the app's, under Basic Information.",
	}}
}
