package instructions

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// plugin writes files into a new directory of that name.
func plugin(t *testing.T, name string, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	for file, text := range files {
		file = filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A plugin gives its words and nothing that executes, and its checksum is that of the command in docs/configure.md.
func TestReadPlugin(t *testing.T) {
	t.Parallel()
	dir := plugin(t, "house", map[string]string{
		"skills/deploy/SKILL.md": "---\nhooks: {}\n---\nDeploy with !`date`.\n", "skills/deploy/run me.sh": "true\n",
		"commands/greet.md": "Greet.\n", "agents/critic.md": "Judge.\n", ".claude-plugin/plugin.json": "{}",
		"hooks/hooks.json": `{"hooks":{}}`, ".mcp.json": "{}", "README.md": "x", "CLAUDE.md": "x",
	})
	set, sum, err := ReadPlugin(dir)
	want := []string{"agent critic", "command greet", "skill deploy"}
	if names := slices.Sorted(slices.Values(set.Names())); err != nil || !slices.Equal(names, want) {
		t.Errorf("%q, %v", names, err)
	}
	for _, f := range set.Skills {
		if strings.HasPrefix(f.Name, "hooks") || strings.Contains(f.Content, "!`date`") ||
			strings.Contains(f.Content, "hooks:") {
			t.Errorf("%+v", f)
		}
	}
	doc, err := os.ReadFile("../../docs/configure.md")
	if err != nil {
		t.Fatal(err)
	}
	_, command, _ := strings.Cut(string(doc), "```sh\nfind ")
	command, _, _ = strings.Cut(command, "\n")
	said := exec.Command("bash", "-c", "find "+command)
	said.Dir = dir
	if out, err := said.Output(); err != nil || strings.Fields(string(out))[0] != sum {
		t.Errorf("%s, want %s; %v", out, sum, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "skills/deploy/run me.sh"), []byte("false\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, other, err := ReadPlugin(dir); err != nil || other == sum {
		t.Errorf("other files have the checksum %s, %v", other, err)
	}
}

func TestReadPluginOfASkill(t *testing.T) {
	t.Parallel()
	dir := plugin(t, "deploy", map[string]string{"SKILL.md": "Deploy.\n", "more/list.md": "x\n"})
	set, _, err := ReadPlugin(dir)
	if err != nil || !slices.Equal(set.Names(), []string{"skill deploy"}) || len(set.Skills) != 2 {
		t.Errorf("%+v, %v", set, err)
	}
}

func TestReadPluginRefuses(t *testing.T) {
	t.Parallel()
	linked := plugin(t, "x", map[string]string{"commands/greet.md": "Greet.\n"})
	if err := os.Symlink("/etc", filepath.Join(linked, "more")); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{
		linked: `"more" is no file`,
		plugin(t, "x", map[string]string{"README.md": "x"}):                 "neither skills",
		plugin(t, "x", map[string]string{"commands/a\nb.md": "x"}):          "line end",
		plugin(t, "x", map[string]string{"commands/a\n0  ./b/c.md": "x"}):   "line end",
		plugin(t, "x", map[string]string{"commands/\xff.md": "x"}):          "is not UTF-8",
		plugin(t, "x", map[string]string{"a": strings.Repeat("x", 17<<20)}): "16 MiB",
		filepath.Join(linked, "none"):                                       "no such file",
	} {
		if _, _, err := ReadPlugin(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", dir, err, want)
		}
	}
}
