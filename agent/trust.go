package agent

import (
	"encoding/json"
	"github.com/errand-fleet/errand/agent/internal/session"
	"os"
	"path/filepath"
	"strings"
)

// A checkout that is trusted brings its own settings, CLAUDE.md, AGENTS.md, agents, commands and MCP servers. The CLI also looks for some of
// them in the directories above (observed with 2.1.329: CLAUDE.md, AGENTS.md and .mcp.json, whose commands it runs), where nobody vouched for
// anything: a worker's state directory may lie in somebody's project.

// settings are the arguments that load what a trusted checkout brings, and nothing from above it; of any other, nothing.
func settings(s Spec, d session.Dirs) ([]string, error) {
	if !s.trusts() {
		return []string{"--setting-sources="}, nil
	}
	settings := map[string]any{"claudeMdExcludes": above(s.Dir)}
	if s.inert { // else the CLI runs both before it answers the greeting (observed with 2.1.329)
		settings["disableAllHooks"], settings["apiKeyHelper"] = true, ""
	}
	path, err := d.WriteJSON("settings.json", settings)
	if err != nil {
		return nil, err
	}
	return []string{"--setting-sources=project", "--settings=" + path}, nil
}

// above are the patterns of all memory files in the directories above dir, whatever they are called.
func above(dir string) []string {
	var patterns []string
	for dir = filepath.Clean(dir); dir != "/"; {
		dir = filepath.Dir(dir)
		for _, name := range []string{"*", ".claude/*", ".claude/rules/**"} {
			patterns = append(patterns, strings.TrimSuffix(literally.Replace(dir), "/")+"/"+name)
		}
	}
	return patterns
}

// literally keeps a pattern's special characters from meaning anything.
var literally = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `{`, `\{`, `}`, `\}`, `(`, `\(`, `)`, `\)`, `!`, `\!`, `+`, `\+`, `@`, `\@`)

// ownServers is the checkout's own list of MCP servers; empty when it has none that could be read. Named explicitly, it is the only one.
func ownServers(dir string) string {
	path := filepath.Join(dir, ".mcp.json")
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() || info.Size() > 1<<20 {
		return ""
	}
	if b, err := os.ReadFile(path); err != nil || !json.Valid(b) { // the CLI would refuse to start
		return ""
	}
	return path
}
