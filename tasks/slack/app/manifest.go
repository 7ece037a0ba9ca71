// Package app describes the Slack app of errand: the scopes that it needs, and the manifest from which Slack makes it.
package app

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
)

// Scope is an OAuth scope of the app.
type Scope struct {
	Name string
	Use  string // what does not work without it; empty: nothing that an app made by an older version misses
	Must bool   // nothing works without it
}

// Scopes lists the scopes of the bot.
func Scopes() []Scope {
	return []Scope{
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

// The shortcut in the menu of messages. Its name has at most 24 characters.
const (
	ShortcutName = "Ask errand about this"
	ShortcutID   = "ask"
)

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
	for _, s := range Scopes() {
		m.OAuth.Scopes.Bot = append(m.OAuth.Scopes.Bot, s.Name)
	}
	slash := slashCommand{
		Command: "/errand", Description: "Starts a task in this channel",
		Hint: "what you want done, or status, or help", Escape: true,
	}
	m.Settings.Events.Events = []string{
		"app_mention", "message.channels", "message.groups", "message.im", "message.mpim", "reaction_added",
		"app_home_opened",
	}
	m.Settings.Interactivity.Enabled = true
	if m.Settings.Socket = base == ""; !m.Settings.Socket {
		m.Settings.Events.URL, m.Settings.Interactivity.URL = base+"/slack/events", base+"/slack/interactions"
		slash.URL = base + "/slack/commands"
	}
	m.Features.Commands = []slashCommand{slash}
	m.Features.Shortcuts = []shortcut{{
		Name: ShortcutName, Type: "message", CallbackID: ShortcutID,
		Description: "Starts a task in the thread of the message",
	}}
	b, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("marshal manifest: %w", err)
	}
	return append(b, '\n'), nil
}
