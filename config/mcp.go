package config

import (
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Server configures an MCP server with tools for the agent. Args, Env and Headers may contain {{.Thread}}, {{.Repo}}
// and {{.Run}}. Env and Headers may also contain {{env "NAME"}} for secrets, which are read when the agent's runner is
// created.
type Server struct {
	Type     string            `yaml:"type"`    // ServerStdio, ServerHTTP or ServerSSE; empty: derived from the other fields
	Command  string            `yaml:"command"` // stdio: an absolute path, or a name to find on PATH
	Args     []string          `yaml:"args"`
	Env      map[string]string `yaml:"env"`
	URL      string            `yaml:"url"` // http, sse
	Headers  map[string]string `yaml:"headers"`
	Profiles []string          `yaml:"profiles"` // profiles of the runs that get it: ProfileWrite, ProfileRead; empty: ProfileWrite
}

// The values of Server.Type.
const (
	ServerStdio = "stdio"
	ServerHTTP  = "http"
	ServerSSE   = "sse"
)

// Kind returns the type, derived from the other fields if Type is empty.
func (s Server) Kind() string {
	switch {
	case s.Type != "":
		return s.Type
	case s.URL != "":
		return ServerHTTP
	default:
		return ServerStdio
	}
}

var (
	serverName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)
	// credential matches names of variables and headers that usually hold a credential.
	credential = regexp.MustCompile(`(?i)(authorization|token|secret|password|api[_-]?key)$`)
)

func (v routingCheck) servers(r Routing) {
	for _, name := range slices.Sorted(maps.Keys(r.MCP)) {
		path := []string{"mcp", name}
		if !serverName.MatchString(name) || name == "errand" {
			v.add("cannot be the name of a server", "write lower-case letters, digits and dashes, at most 32, and not errand, which is taken", path...)
		}
		s := r.MCP[name]
		switch s.Kind() {
		case ServerStdio:
			v.stdio(s, path)
		case ServerHTTP, ServerSSE:
			v.remote(s, path)
		default:
			v.add(fmt.Sprintf("must be stdio, http or sse, not %q", s.Type), "", append(path, "type")...)
		}
		for _, p := range s.Profiles {
			if p != ProfileWrite && p != ProfileRead {
				v.add(fmt.Sprintf("must be `write` or `read`, not %q", p), "runs on untrusted input get no servers", append(path, "profiles")...)
			}
		}
		v.literal(s.Env, append(path, "env"))
		v.literal(s.Headers, append(path, "headers"))
	}
}

func (v routingCheck) stdio(s Server, path []string) {
	switch {
	case s.URL != "" || len(s.Headers) > 0:
		v.add("has a url or headers besides a command", "keep command, args and env, or url and headers", path...)
	case s.Command == "":
		v.add("has neither command nor url", "add `command: …` for a program to start, or `url: …` for a server to connect to", path...)
	case !filepath.IsAbs(s.Command) && s.Command != filepath.Base(s.Command):
		v.add(fmt.Sprintf("is %q, which would be looked for in each checkout", s.Command), "write an absolute path, or a name to find on PATH", append(path, "command")...)
	}
}

func (v routingCheck) remote(s Server, path []string) {
	u, err := url.Parse(s.URL)
	switch {
	case s.Command != "" || len(s.Args)+len(s.Env) > 0:
		v.add("has a command, args or env besides a url", "keep command, args and env, or url and headers", path...)
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil:
		v.add("is not an absolute http or https URL without a user", "write it like https://mcp.example.com/mcp", append(path, "url")...)
	}
}

// literal refuses a credential in errand.yaml, because the redactor would not know it.
func (v routingCheck) literal(values map[string]string, path []string) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if value := values[name]; credential.MatchString(name) && value != "" && !strings.Contains(value, "{{") {
			v.add("holds a credential", "put it into the environment as NAME and write {{env \"NAME\"}} in its place", slices.Concat(path, []string{name})...)
		}
	}
}
