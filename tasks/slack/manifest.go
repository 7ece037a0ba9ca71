package slack

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/errand-fleet/errand/internal/doctor"
	"github.com/errand-fleet/errand/tasks/intake"
	"github.com/errand-fleet/errand/tasks/slack/render"
)

// scope is an OAuth scope of the app.
type scope struct {
	name string
	use  string // what does not work without it; empty: nothing that an app made by an older version misses
	must bool   // nothing works without it
}

// scopes lists the scopes of the bot.
func scopes() []scope {
	return []scope{
		{"app_mentions:read", "mentions are not received", true},
		{"chat:write", "nothing can be posted", true},
		{"users:read", "guests are not recognised, and no user is let in", true},
		{"channels:history", "threads in public channels are not read, and an answer may be posted twice there", false},
		{"groups:history", "threads in private channels are not read, and an answer may be posted twice there", false},
		{"im:history", "direct messages are not received", false},
		{"mpim:history", "threads in group messages are not read, and an answer may be posted twice there", false},
		{"reactions:write", "requests get no 👀", false},
		{"reactions:read", "a ❌ on a request does not stop it", false},
		{"channels:read", "`enqueue init guide` cannot list channels", false},
		{"channels:join", "`enqueue init guide` cannot join channels", false},
		{"commands", "", false}, // of which Slack itself says that they are not there
		{"files:read", "attached files are not read", false},
		{"files:write", "files are not posted, and very long answers take many messages", false},
	}
}

// events lists the events that the app subscribes to.
func events() []string {
	return []string{
		appMention, "message.channels", "message.groups", "message.im", "message.mpim", reactionAdded, appHomeOpened,
	}
}

// manifest has the fields of Slack's app manifest that errand sets.
type manifest struct {
	Display struct {
		Name        string `json:"name"`
		Description string `json:"description"`
	} `json:"display_information"`
	Features struct {
		Home struct {
			HomeTab  bool `json:"home_tab_enabled"`
			Messages bool `json:"messages_tab_enabled"`
			ReadOnly bool `json:"messages_tab_read_only_enabled"`
		} `json:"app_home"`
		Bot struct {
			Name   string `json:"display_name"`
			Online bool   `json:"always_online"`
		} `json:"bot_user"`
		Commands  []slashCommand `json:"slash_commands"`
		Shortcuts []shortcut     `json:"shortcuts"`
	} `json:"features"`
	OAuth struct {
		Scopes struct {
			Bot []string `json:"bot"`
		} `json:"scopes"`
	} `json:"oauth_config"`
	Settings struct {
		Events struct {
			URL    string   `json:"request_url,omitempty"`
			Events []string `json:"bot_events"`
		} `json:"event_subscriptions"`
		Interactivity struct {
			Enabled bool   `json:"is_enabled"`
			URL     string `json:"request_url,omitempty"`
		} `json:"interactivity"`
		Org    bool `json:"org_deploy_enabled"`
		Socket bool `json:"socket_mode_enabled"`
		Rotate bool `json:"token_rotation_enabled"`
	} `json:"settings"`
}

// slashCommand is a slash command in a manifest.
type slashCommand struct {
	Command     string `json:"command"`
	URL         string `json:"url,omitempty"`
	Description string `json:"description"`
	Hint        string `json:"usage_hint"`
	Escape      bool   `json:"should_escape"` // names of people and channels come as IDs
}

// shortcut is an entry of the menu of messages in a manifest.
type shortcut struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	CallbackID  string `json:"callback_id"`
	Description string `json:"description"`
}

// maxAppName is the length of an app's name in characters.
const maxAppName = 35

// shortcutName is at most 24 characters long.
const shortcutName = "Ask errand about this"

// Manifest returns the manifest from which Slack makes the app, as JSON to paste. base is the URL at which Slack
// reaches the front door, like https://errand.example.com; empty: Socket Mode is used.
func Manifest(name, base string) ([]byte, error) {
	if name == "" || len(name) > maxAppName {
		return nil, fmt.Errorf("the name of an app has from 1 to %d characters", maxAppName)
	}
	if u, err := url.Parse(base); base != "" && (err != nil || u.Scheme != "https" || u.Host == "") {
		return nil, fmt.Errorf("%q is not a URL that Slack accepts: write it like https://errand.example.com", base)
	}
	base = strings.TrimRight(base, "/")
	var m manifest
	m.Display.Name, m.Display.Description = name, "Runs errands: asks and answers in threads, works in repositories"
	m.Features.Bot.Name, m.Features.Bot.Online = name, true
	m.Features.Home.HomeTab, m.Features.Home.Messages = true, true
	for _, s := range scopes() {
		m.OAuth.Scopes.Bot = append(m.OAuth.Scopes.Bot, s.name)
	}
	slash := slashCommand{
		Command: "/errand", Description: "Starts a task in this channel",
		Hint: "what you want done, or status, or help", Escape: true,
	}
	m.Settings.Events.Events, m.Settings.Interactivity.Enabled = events(), true
	if m.Settings.Socket = base == ""; !m.Settings.Socket {
		m.Settings.Events.URL, m.Settings.Interactivity.URL = base+"/slack/events", base+"/slack/interactions"
		slash.URL = base + "/slack/commands"
	}
	m.Features.Commands = []slashCommand{slash}
	m.Features.Shortcuts = []shortcut{{
		Name: shortcutName, Type: "message", CallbackID: render.ActionAsk,
		Description: "Starts a task in the thread of the message",
	}}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(m); err != nil {
		return nil, fmt.Errorf("marshal manifest: %w", err)
	}
	return b.Bytes(), nil
}

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
			What: "Slack does not answer", Why: err.Error(), Remedy: "Check the network and SLACK_API_URL.",
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
	for _, needed := range scopes() {
		if !has[needed.name] && needed.use != "" {
			list = append(list, doctor.Finding{
				What: "Slack: the app lacks the scope " + needed.name, Why: "Without it " + needed.use + ".",
				Fatal: needed.must,
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
