package slack

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
)

// scope is an OAuth scope of the app.
type scope struct {
	name string
	use  string // what does not work without it
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
		{"files:read", "attached files are not read", false},
		{"files:write", "files are not posted, and very long answers take many messages", false},
	}
}

// events lists the events that the app subscribes to.
func events() []string {
	return []string{appMention, "message.channels", "message.groups", "message.im", "message.mpim", reactionAdded}
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

// maxAppName is the length of an app's name in characters.
const maxAppName = 35

// Manifest returns the manifest from which Slack makes the app, as JSON to paste. base is the URL at which Slack reaches the front door, like
// https://errand.example.com; empty: Socket Mode is used.
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
	m.Features.Home.Messages = true
	for _, s := range scopes() {
		m.OAuth.Scopes.Bot = append(m.OAuth.Scopes.Bot, s.name)
	}
	m.Settings.Events.Events, m.Settings.Interactivity.Enabled = events(), true
	if m.Settings.Socket = base == ""; !m.Settings.Socket {
		m.Settings.Events.URL, m.Settings.Interactivity.URL = base+"/slack/events", base+"/slack/interactions"
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(m); err != nil {
		return nil, fmt.Errorf("marshal manifest: %w", err)
	}
	return b.Bytes(), nil
}
