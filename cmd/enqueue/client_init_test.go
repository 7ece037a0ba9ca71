package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// What goes to stdout is for the service alone; nobody has to be reachable for it.
func TestInitOfServices(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		args []string
		env  map[string]string
		code int
		out  string
		said string
	}{
		"socket":     {args: []string{"slack"}, out: `"socket_mode_enabled": true`, said: "SLACK_APP_TOKEN"},
		"flag":       {args: []string{"slack", "-name", "bob", "-url", "https://e.example"}, out: `"request_url": "https://e.example/slack/interactions"`, said: "invite @bob"},
		"setting":    {args: []string{"slack"}, env: map[string]string{"ERRAND_PUBLIC_URL": "https://e.example"}, out: `"https://e.example/slack/events"`, said: "SLACK_SIGNING_SECRET"},
		"too much":   {args: []string{"slack", "x"}, code: 2, said: "usage: enqueue init"},
		"flag typo":  {args: []string{"slack", "-uri", "x"}, code: 2, said: "there is no flag -uri"},
		"no address": {args: []string{"slack", "-url", "http://localhost"}, code: 2, said: "https://errand.example.com"},

		"nobody":       {args: []string{"gitlab"}, code: 2, said: "usage: enqueue init"},
		"app":          {args: []string{"github", "-url", "https://e.example"}, out: `"url": "https://e.example/github/webhook"`, said: "https://github.com/settings/apps/new?"},
		"app, setting": {args: []string{"github"}, env: map[string]string{"ERRAND_PUBLIC_URL": "https://e.example"}, out: `"https://e.example/github/webhook"`, said: "contents=write"},
		"app of an organisation": {
			args: []string{"github", "-org", "acme", "-name", "bob", "-url", "https://e.example"}, env: map[string]string{"GITHUB_URL": "https://ghe.example"},
			out: `"name": "bob"`, said: "https://ghe.example/organizations/acme/settings/apps/new?",
		},
		"app, too much":   {args: []string{"github", "x"}, code: 2, said: "usage: enqueue init"},
		"app, no address": {args: []string{"github"}, code: 2, said: "https://errand.example.com"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out, errs bytes.Buffer
			code := client(t.Context(), append([]string{"init"}, tc.args...), world{getenv: func(name string) string { return tc.env[name] }, stdout: &out, stderr: &errs})
			if code != tc.code || !strings.Contains(out.String(), tc.out) || !strings.Contains(errs.String(), tc.said) {
				t.Errorf("exit %d\n%s\n%s", code, &out, &errs)
			}
			if tc.out != "" && !json.Valid(out.Bytes()) {
				t.Errorf("not to be pasted: %s", &out)
			}
		})
	}
}
