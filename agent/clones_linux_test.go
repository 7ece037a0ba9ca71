package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/internal/fake/modelfake"
)

// The CLI works in further clones, and in a further directory, as in its own directory, with the operator's rules for
// paths. It loads no settings or memory from them, and agents and skills only if they are trusted.
func TestCLIFurtherClones(t *testing.T) {
	t.Parallel()
	also := t.TempDir()
	put(t, also, map[string]string{
		"CLAUDE.md": "ALSO-MEMORY\n", "AGENTS.md": "ALSO-AGENTS\n", ".claude/CLAUDE.md": "ALSO-MEMORY\n",
		".claude/settings.json": `{"hooks":{"SessionStart":[{"hooks":[{"type":"command","command":"touch ` +
			also + `/hooked"}]}]}}`,
		".claude/commands/also.md":      "---\ndescription: ALSO-COMMAND\n---\nx\n",
		".claude/agents/also.md":        "---\nname: also\ndescription: SOME-AGENT\n---\nx\n",
		".claude/skills/also/SKILL.md":  "---\nname: also\ndescription: SOME-SKILL\n---\nx\n",
		".mcp.json":                     `{"mcpServers":{"also":{"command":"touch","args":["` + also + `/served"]}}}`,
		".claude/settings.local.json":   `{"env":{"ALSO":"1"}}`,
		".claude/rules/unrelated/a.md":  "ALSO-RULE\n",
		".claude/output-styles/also.md": "---\nname: also\n---\nALSO-STYLE\n",
	})
	for name, trusted := range map[string]bool{"trusted": true, "not-trusted": false} {
		further, files := t.TempDir(), map[string]bool{
			name: true, "by-bash-" + name: true, "docs/" + name: false, "hooked": false, "served": false,
		}
		write := func(path string) modelfake.ToolCall {
			return call("Write", "file_path", path, "content", "x").Tools[0]
		}
		model := newModel(t, modelfake.Turn{Tools: []modelfake.ToolCall{
			write(filepath.Join(also, name)), write(filepath.Join(also, "docs", name)),
			write(filepath.Join(further, "x")),
			bash("touch " + also + "/by-bash-" + name).Tools[0],
		}}, modelfake.Turn{Text: "Done."})
		res := runCLI(t, newCLI(t, model), Spec{
			ID: "clones-" + name, Also: []Also{{"acme/web", also}}, Files: further,
			Profile: Write, TrustedConfig: trusted,
			Rules: []Rule{{Tool: "Write", Input: "docs/**", Action: Deny, Reason: "not the docs"}},
		}, &host{})
		if res.Outcome != Done {
			t.Fatalf("%s: %+v", name, res)
		}
		if _, err := os.Stat(filepath.Join(further, "x")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !strings.Contains(string(model.Requests()[0].Body), further) {
			t.Errorf("%s: the model does not know of the further directory", name)
		}
		for file, want := range files {
			if _, err := os.Stat(filepath.Join(also, file)); (err == nil) != want {
				t.Errorf("%s: %s: %v", name, file, err)
			}
		}
		for _, r := range model.Requests() {
			body := string(r.Body)
			if at := strings.Index(body, "ALSO-"); at >= 0 {
				t.Errorf("%s: the model got %.60s", name, body[at:])
			}
			if !trusted && strings.Contains(body, "SOME-") {
				t.Errorf("%s: the model got agents or skills", name)
			}
		}
	}
}
