package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestServers(t *testing.T) {
	t.Parallel()
	var p Problems
	got, _ := parseRouting(&p, "errand.yaml", []byte(`
mcp:
  tickets:
    command: tickets-mcp
    args: ["--of={{.Thread}}", x]
    env: {TICKETS_TOKEN: '{{env "T"}}', TOKEN_FILE: /etc/x}
  search: {url: "https://h/mcp?a=b", headers: {Authorization: 'Bearer {{env "S"}}'}, profiles: [read, write]}
  old: {url: "http://h/sse"}
`))
	want := map[string]Server{
		"tickets": {
			Command: "tickets-mcp", Args: []string{"--of={{.Thread}}", "x"},
			Env: map[string]string{"TICKETS_TOKEN": `{{env "T"}}`, "TOKEN_FILE": "/etc/x"},
		},
		"search": {
			URL: "https://h/mcp?a=b", Headers: map[string]string{"Authorization": `Bearer {{env "S"}}`},
			Profiles: []string{"read", "write"},
		},
		"old": {URL: "http://h/sse"},
	}
	if diff := cmp.Diff(want, got.MCP); diff != "" || len(p) > 0 {
		t.Errorf("servers (-want +got):\n%s\nproblems: %v", diff, p)
	}
}

func TestServerProblems(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ text, want string }{
		{
			"Tickets: {command: x}",
			"f:2: mcp.Tickets cannot be the name of a server; write lower-case letters, digits and dashes, at most 32, and not errand, which is taken",
		},
		{
			"errand: {command: x}",
			"f:2: mcp.errand cannot be the name of a server; write lower-case letters, digits and dashes, at most 32, and not errand, which is taken",
		},
		{
			"t:",
			"f:2: mcp.t has neither command nor url; add `command: …` for a program to start, or `url: …` for a server to connect to",
		},
		{
			"t: {command: ./x}",
			`f:2: mcp.t.command is "./x", which would be looked for in each checkout; write an absolute path, or a name to find on PATH`,
		},
		{
			"t: {command: x, headers: {A: b}}",
			"f:2: mcp.t has headers or a type and no url; keep command, args and env, or url, type and headers",
		},
		{
			"t: {command: x, url: 'http://h'}",
			"f:2: mcp.t has a url and also a command, args or env; keep command, args and env, or url, type and headers",
		},
		{
			"t: {url: h}",
			"f:2: mcp.t.url is not an absolute http or https URL without a user; write it like https://mcp.example.com/mcp",
		},
		{
			"t: {url: 'https://hush:hush@h'}",
			"f:2: mcp.t.url is not an absolute http or https URL without a user; write it like https://mcp.example.com/mcp",
		},
		{"t: {url: 'http://h', type: ws}", `f:2: mcp.t.type must be http or sse, not "ws"; leave it out if the path says which`},
		{
			"t:\n    command: x\n    profiles: [untrusted]",
			"f:4: mcp.t.profiles must be `write` or `read`, not \"untrusted\"; runs on untrusted input get no servers",
		},
		{
			"t:\n    command: x\n    env:\n      API_KEY: hush",
			`f:5: mcp.t.env.API_KEY holds a credential; put it into the environment as NAME and write {{env "NAME"}} in its place`,
		},
		{
			"t: {url: 'http://h', headers: {authorization: hush}}",
			`f:2: mcp.t.headers.authorization holds a credential; put it into the environment as NAME and write {{env "NAME"}} in its place`,
		},
		{"t: {command: x, args: y}", `f:2: mcp.t.args does not have the right form; write a list, each entry after a dash`},
		{"t: {command: x, env: hush}", "f:2: mcp.t.env does not have the right form; write keys with values"},
		{"t: {command: x, env: \"a\\nb\"}", "f:2: mcp.t.env does not have the right form; write keys with values"},
		{
			"t: {run: x}",
			`f:2: knows no key "run"; remove it or correct its spelling; the keys here are command, args, env, url, type, headers, profiles`,
		},
	} {
		t.Run(tc.text, func(t *testing.T) {
			t.Parallel()
			var p Problems
			parseRouting(&p, "f", []byte("mcp:\n  "+tc.text))
			var got []string
			for _, problem := range p {
				got = append(got, problem.String())
			}
			if diff := cmp.Diff(tc.want, strings.Join(got, "\n")); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}
