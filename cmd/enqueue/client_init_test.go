package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/store"
)

// What goes to stdout is for the service alone; nobody has to be reachable for it.
func TestInit(t *testing.T) {
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
		"help":       {args: []string{"slack", "-h"}, said: "usage: enqueue init slack"},
		"nothing":    {code: 2, said: "usage: enqueue init slack|github"},
		"too much":   {args: []string{"slack", "x"}, code: 2, said: "usage: enqueue init slack"},
		"flag typo":  {args: []string{"slack", "-uri", "x"}, code: 2, said: "usage: enqueue init slack"},
		"no address": {args: []string{"slack", "-url", "http://localhost"}, code: 1, said: "https://errand.example.com"},

		"nobody":       {args: []string{"gitlab"}, code: 2, said: "usage: enqueue init slack|github"},
		"app":          {args: []string{"github", "-url", "https://e.example"}, out: `"url": "https://e.example/github/webhook"`, said: "https://github.com/settings/apps/new?"},
		"app, setting": {args: []string{"github"}, env: map[string]string{"ERRAND_PUBLIC_URL": "https://e.example"}, out: `"https://e.example/github/webhook"`, said: "contents=write"},
		"app of an organisation": {
			args: []string{"github", "-org", "acme", "-name", "bob", "-url", "https://e.example"}, env: map[string]string{"GITHUB_URL": "https://ghe.example"},
			out: `"name": "bob"`, said: "https://ghe.example/organizations/acme/settings/apps/new?",
		},
		"app, help":       {args: []string{"github", "-h"}, said: "usage: enqueue init github"},
		"app, too much":   {args: []string{"github", "x"}, code: 2, said: "usage: enqueue init github"},
		"app, no address": {args: []string{"github"}, code: 1, said: "https://errand.example.com"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out, errs bytes.Buffer
			code := client(t.Context(), append([]string{"init"}, tc.args...), func(name string) string { return tc.env[name] }, &out, &errs)
			if code != tc.code || !strings.Contains(out.String(), tc.out) || !strings.Contains(errs.String(), tc.said) {
				t.Errorf("exit %d\n%s\n%s", code, &out, &errs)
			}
			if tc.out != "" && !json.Valid(out.Bytes()) {
				t.Errorf("not to be pasted: %s", &out)
			}
		})
	}
}

func TestDoctorOfServices(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	if err := f.Store.Beat(t.Context(), store.Worker{ID: "w"}); err != nil {
		t.Fatal(err)
	}
	f.services = []store.Finding{{What: "Slack knows us"}, {Severity: store.Warning, What: "no scope", Why: "no files", Remedy: "Add it."}}
	code, out, errs := f.run("doctor")
	if code != 0 || !strings.Contains(out, "ok       Slack knows us\n") || !strings.Contains(out, "warning  no scope\n") || !strings.Contains(out, "Add it.\n") {
		t.Errorf("exit %d\n%s\n%s", code, out, errs)
	}
	f.services = []store.Finding{{Severity: store.Fatal, What: "no token", Why: "x"}}
	if code, out, _ := f.run("doctor"); code != 1 || !strings.Contains(out, "error    no token\n") {
		t.Errorf("exit %d\n%s", code, out)
	}
}
