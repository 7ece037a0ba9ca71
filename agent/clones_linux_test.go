package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/internal/fake/modelfake"
)

// The CLI works in further clones as in its own directory, with the operator's rules for paths. It loads no settings or
// memory from them, and agents and skills only if they are trusted.
func TestCLIFurtherClones(t *testing.T) {
	t.Parallel()
	also := t.TempDir()
	for path, text := range map[string]string{
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
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(also, path)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(also, path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, trusted := range map[string]bool{"trusted": true, "not-trusted": false} {
		model := newModel(t)
		write := func(name string) modelfake.ToolCall {
			return modelfake.ToolCall{Name: "Write", Input: map[string]string{
				"file_path": filepath.Join(also, name), "content": "x",
			}}
		}
		model.Answer("", modelfake.Turn{Tools: []modelfake.ToolCall{
			write(name), write("docs/" + name), {
				Name: "Bash", Input: map[string]string{"command": "touch " + also + "/by-bash-" + name},
			},
		}}, modelfake.Turn{Text: "Done."})
		res := runCLI(t, newCLI(t, model), Spec{
			ID: "clones-" + name, Dir: t.TempDir(), Also: []Also{{"acme/web", also}}, Prompt: Message{Text: "x"},
			Profile: Write, TrustedConfig: trusted,
			Rules: []Rule{{Tool: "Write", Input: "docs/**", Action: Deny, Reason: "not the docs"}},
		}, &host{})
		if res.Outcome != Done {
			t.Fatalf("%s: %+v", name, res)
		}
		for file, want := range map[string]bool{
			name: true, "by-bash-" + name: true, "docs/" + name: false, "hooked": false, "served": false,
		} {
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
