package wire

import (
	"maps"
	"os"
	"slices"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/config"
)

// servers are the agent's servers of tools.
func servers(c config.Config) []agent.MCPServer {
	var list []agent.MCPServer
	for _, name := range slices.Sorted(maps.Keys(c.Routing.MCP)) {
		s := c.Routing.MCP[name]
		m := agent.MCPServer{Name: name, Type: s.Kind(), Command: s.Command, Args: s.Args, Env: s.Env, URL: s.URL, Headers: s.Headers}
		for _, p := range s.Profiles {
			m.Profiles = append(m.Profiles, agent.Profile(p))
		}
		list = append(list, m)
	}
	return list
}

// redactor knows every secret that errand was given.
func redactor(c config.Config) *agent.Redactor {
	return agent.NewRedactor(append(c.Secrets(), agent.ServerSecrets(servers(c), os.Getenv)...)...)
}
