package agent

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/errand-fleet/errand/internal/fake/modelfake"
)

// instructionFiles are names under which programs of this kind look for what they obey, now or perhaps in a coming
// version.
var instructionFiles = []string{
	"CLAUDE.md", "CLAUDE.local.md", "CLAUDE.override.md", "AGENTS.md", "AGENTS.local.md", "AGENTS.override.md",
	"AGENT.md", "agents.md", "claude.md", "GEMINI.md", "CONVENTIONS.md", "README.md", ".cursorrules", ".windsurfrules",
	".clinerules", ".cursor/rules/x.mdc", ".github/copilot-instructions.md", ".agents/AGENTS.md", ".agent/AGENTS.md",
	".codex/AGENTS.md", ".claude/CLAUDE.md", ".claude/CLAUDE.local.md", ".claude/AGENTS.md", ".claude/rules/x.md",
	".claude/agents/x.md", ".claude/commands/x.md", ".claude/skills/x/SKILL.md", ".claude/output-styles/x.md",
	".claude/workflows/x.md", ".claude/memory/x.md", ".agents/skills/x/SKILL.md",
}

// opened watches which files are opened in all directories below top, by whomever.
func opened(t *testing.T, top string) (files func() []string) {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	dirs := map[int32]string{}
	err = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if d.Name() == ".git" {
			return fs.SkipDir
		}
		wd, err := unix.InotifyAddWatch(fd, path, unix.IN_OPEN)
		dirs[int32(wd)], _ = filepath.Rel(top, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return func() (all []string) {
		buf := make([]byte, 64<<10)
		for {
			n, err := unix.Read(fd, buf)
			if errors.Is(err, unix.EAGAIN) {
				slices.Sort(all)
				return slices.Compact(all)
			}
			if err != nil {
				t.Fatal(err)
			}
			for rest := buf[:n]; len(rest) > 0; {
				wd, mask := int32(binary.NativeEndian.Uint32(rest)), binary.NativeEndian.Uint32(rest[4:])
				size := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(rest[12:]))
				if name := string(bytes.TrimRight(rest[unix.SizeofInotifyEvent:size], "\x00")); name != "" &&
					mask&unix.IN_ISDIR == 0 {
					all = append(all, filepath.Join(dirs[wd], name))
				}
				if mask&unix.IN_Q_OVERFLOW != 0 {
					t.Fatal("more was opened than can be recorded")
				}
				rest = rest[size:]
			}
		}
	}
}

// Of all files that a CLI of this kind may obey it opens those that are known, and obeys those of the checkout
// alone. A version that opens
// another one fails here: what it reads there has to come from the base branch (workspace.Want.TrustedConfig), or
// must not be read. Hooks and servers of the checkout run only if it is trusted, and those of
// the directories above it never.
func TestCLIOpensKnownFilesOnly(t *testing.T) {
	t.Parallel()
	const clone = "state/clone/"
	for name, c := range map[string]struct {
		without []string // names that are nowhere
		obeys   string   // what the model sees; empty: the checkout is not trusted
	}{
		"untrusted": {},
		"trusted":   {obeys: "CLAUDE.md"},
		"no-claude": {
			without: []string{"CLAUDE.md", "claude.md", ".claude/CLAUDE.md", "CLAUDE.local.md"}, obeys: "AGENTS.md",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model, top, ran := newModel(t), t.TempDir(), t.TempDir()
			files := map[string]string{clone + "sub/x.txt": "x\n"}
			for dir, mark := range map[string]string{clone: "", "": "-above"} {
				files[dir+".claude/settings.json"] = strings.TrimSuffix(hooksFor(filepath.Join(ran, "hooked"+mark)), "}") +
					`,"apiKeyHelper":"touch ` + filepath.Join(ran, "helped"+mark) + `"}`
				files[dir+".mcp.json"] = `{"mcpServers":{"x` + mark + `":{"type":"stdio","command":"touch","args":["` +
					filepath.Join(ran, "served"+mark) + `"]}}}`
			}
			for _, dir := range []string{"", "state/", clone, clone + "sub/"} {
				for _, file := range instructionFiles {
					if mark := "MARK(" + dir + file + ")"; !slices.Contains(c.without, file) {
						files[dir+file] = "---\nname: x\ndescription: " + mark + "\n---\n" + mark + "\n@imported.md\n"
						files[filepath.Dir(dir+file)+"/imported.md"] = "imported\n"
					}
				}
			}
			put(t, top, files)
			if out, err := exec.Command("git", "init", "-q", filepath.Join(top, clone)).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			model.Answer("x", call("Read", "file_path", filepath.Join(top, clone, "sub/x.txt")), modelfake.Turn{Text: "Read."})
			seen := opened(t, top)
			spec := Spec{
				ID: "opens-" + name, Dir: filepath.Join(top, clone), Prompt: Message{Text: "x"}, Profile: Write,
				TrustedConfig: c.obeys != "",
			}
			r := newCLI(t, model, func(cfg *Config) {
				cfg.Servers = []MCPServer{{
					Name: "fleet", Type: ServerStdio, Command: "touch", Args: []string{filepath.Join(ran, "fleet")},
					Profiles: []Profile{Write},
				}}
			})
			runCLI(t, r, spec, &host{})
			if _, err := os.Stat(filepath.Join(ran, "fleet")); err != nil {
				t.Errorf("the fleet's server did not start: %v", err)
			}
			for _, made := range []string{
				"hooked", "served", "helped", "hooked-above", "served-above", "helped-above",
			} {
				_, err := os.Stat(filepath.Join(ran, made))
				if (err == nil) != (c.obeys != "" && !strings.Contains(made, "above")) {
					t.Errorf("%s: %v", made, err)
				}
			}
			// As workspace takes them from the base branch, and what instructions import.
			known := regexp.MustCompile(`^state/clone/(sub/)?(\.claude/.*|CLAUDE\.md|AGENTS\.md|imported\.md|\.mcp\.json)$`)
			unheeded := []string{clone + "sub/x.txt", clone + ".claude/settings.json", ".mcp.json"} // as ran shows
			for _, file := range seen() {
				if !slices.Contains(unheeded, file) && (c.obeys == "" || !known.MatchString(file)) {
					t.Errorf("%s was opened", file)
				}
			}
			told := bodies(model)
			for _, mark := range strings.Split(told, "MARK(")[1:] {
				if mark, _, _ = strings.Cut(mark, ")"); c.obeys == "" || !known.MatchString(mark) {
					t.Errorf("%s reached the model", mark)
				}
			}
			if c.obeys != "" && (!strings.Contains(told, "MARK("+clone+c.obeys+")") ||
				!strings.Contains(told, "MARK("+clone+"sub/"+c.obeys+")")) {
				t.Errorf("%s did not reach the model, so this shows nothing", c.obeys)
			}
		})
	}
}
