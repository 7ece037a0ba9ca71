package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/errand-fleet/errand/agent/internal/protocol"
	"github.com/errand-fleet/errand/agent/internal/session"
	"github.com/errand-fleet/errand/internal/instructions"
)

// Instructions are what a repository or the operator tells the agent. The runner hands them over as text, so the CLI
// need not read them from a clone, where a head that nobody has approved may have changed them. Texts about the whole
// repository are part of the system prompt and are given to each sub-agent; those about some paths follow when the
// agent has read or changed a file there, as the CLI would load them. Skills, commands and agents are a plugin of the
// CLI for this run. A run that trusts its configuration has those of the clone instead.
type Instructions struct {
	Repo string // owner/name, or what else they are of
	Dir  string // of the clone; empty: they are the operator's
	instructions.Set
}

// TextInstructions returns instructions that are one text of the operator. In the file from it is called name.
func TextInstructions(from, name, text string) Instructions {
	return Instructions{Repo: from, Set: instructions.Set{Texts: []instructions.Text{{Name: name, Text: text}}}}
}

// maxNames bounds how many names a Result lists.
const maxNames = 100

// ReadPlugin returns the skills, commands and agents of a directory of the operator, which is a plugin of the CLI or
// one skill. Nothing of it is executed: hooks, servers and shell in texts are left out. It returns an error if its
// files have another checksum than sum, which docs/configure.md says how to compute.
func ReadPlugin(dir, sum string) (Instructions, error) {
	set, got, err := instructions.ReadPlugin(dir)
	if err == nil && got != sum {
		err = fmt.Errorf("its files have the checksum %s", got)
	}
	if err != nil {
		return Instructions{}, fmt.Errorf("read plugin %s: %w", dir, err)
	}
	return Instructions{Repo: filepath.Base(dir), Set: set}, nil
}

// ofProject reports whether some instructions are those of the run's directories, so that the CLI must not read them.
func (s Spec) ofProject() bool {
	return slices.ContainsFunc(s.Instructions, func(i Instructions) bool { return i.Dir != "" })
}

// instructed lists what the run was told for people: the names of files, skills, commands and agents, with where they
// are from if there are several places, and what was cut or left out.
func (s Spec) instructed(redactor *Redactor) (lines []string) {
	var notes []string
	for _, i := range s.Instructions {
		of := ""
		if len(s.Instructions) > 1 {
			of = i.Repo + ": "
		}
		for _, name := range i.Names() {
			lines = append(lines, redactor.OneLine(of+name))
		}
		for _, note := range i.Notes {
			notes = append(notes, redactor.OneLine(of+note))
		}
	}
	if more := len(lines) - maxNames; more > 0 {
		lines = append(lines[:maxNames], fmt.Sprintf("and %d more", more))
	}
	return append(lines, notes...)
}

// always returns the texts that the agent gets at once.
func (s Spec) always() string {
	var b strings.Builder
	for _, i := range s.Instructions {
		for _, t := range i.Texts {
			if len(t.Paths) == 0 {
				fmt.Fprintf(&b, "\n\nContents of %s of %s:\n\n%s", t.Name, i.Repo, strings.TrimRight(t.Text, "\n"))
			}
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "The instructions of the repository follow, as its base branch has them, and those of errand's operator " +
		"in errand.yaml. Adhere to them: they override your default behavior, and they do not override what is said " +
		"above about errand, or the request. Where they contradict each other, the later ones count." + b.String()
}

// system returns what is appended to the CLI's system prompt.
func (s Spec) system() string {
	return strings.TrimSpace(s.System + "\n\n" + s.always())
}

// pluginsDir is the directory with the plugins of a run, below that of the run.
const pluginsDir = "i"

// plugins returns the names of the plugins with the skills of each repository and of the operator; empty for none. A
// run that trusts its directories has their skills there.
func (s Spec) plugins() []string {
	names := make([]string, len(s.Instructions))
	for n, i := range s.Instructions {
		if len(i.Skills) == 0 || s.trusts() && i.Dir != "" {
			continue
		}
		name := pluginName(path.Base(i.Repo))
		if slices.Contains(names, name) {
			name = pluginName(i.Repo)
		}
		for slices.Contains(names, name) { // a/b-c and a-b/c
			name += "-" + strconv.Itoa(n)
		}
		names[n] = name
	}
	return names
}

// withoutPlugin returns the name of a skill, command or agent as its repository calls it.
func (s Spec) withoutPlugin(name string) string {
	plugin, short, found := strings.Cut(name, ":")
	if found && slices.Contains(s.plugins(), plugin) {
		return short
	}
	return name
}

// pluginName returns a name that the CLI accepts.
func pluginName(name string) string {
	return cmp.Or(strings.Trim(notInPlugin.ReplaceAllString(strings.ToLower(name), "-"), "-"), "repository")
}

var notInPlugin = regexp.MustCompile(`[^a-z0-9]+`)

// pluginArguments writes the plugins and makes the CLI load them.
func pluginArguments(s Spec, d session.Dirs) (args []string, err error) {
	for n, name := range s.plugins() {
		if name == "" {
			continue
		}
		dir := filepath.Join(pluginsDir, name)
		files := slices.Concat(s.Instructions[n].Skills, []instructions.File{
			{Name: ".claude-plugin/plugin.json", Content: fmt.Sprintf(`{"name":%q,"version":"1.0.0"}`, name)},
		})
		if err := writeFiles(filepath.Join(d.Root, dir), files); err != nil {
			return nil, fmt.Errorf("write skills of %s: %w", s.Instructions[n].Repo, err)
		}
		args = append(args, "--plugin-dir="+filepath.Join(d.Inside().Root, dir))
	}
	return args, nil
}

// writeFiles writes files that nobody can execute into a new directory.
func writeFiles(dir string, files []instructions.File) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, f := range files {
		if err := root.MkdirAll(path.Dir(f.Name), 0o700); err != nil {
			return err
		}
		if err := root.WriteFile(f.Name, []byte(f.Content), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// The CLI shows the agent at most 10,000 characters of what a hook says, and each hook of an event says its own
// (2.1.329). So a text goes out in pieces, as many at once as there are hooks; what is left follows at the next call.
const (
	maxPiece  = 9_000 // bytes
	maxPieces = 6     // after one call of a tool
	maxTitle  = 200   // bytes that name the text in each piece
)

// instructor gives the texts about some paths when they are due, and all other texts to sub-agents.
type instructor struct {
	spec     *Spec
	patterns map[string]*regexp.Regexp // of the paths of all texts

	mu   sync.Mutex
	told map[string]bool     // by agent and text
	left map[string][]string // pieces to give, by agent
}

// newInstructor compiles the patterns once: there may be many, and each call of a tool is compared with all of them.
func newInstructor(spec *Spec) *instructor {
	i := &instructor{
		spec: spec, patterns: map[string]*regexp.Regexp{}, told: map[string]bool{}, left: map[string][]string{},
	}
	for _, r := range spec.Instructions {
		for _, t := range r.Texts {
			for _, p := range t.Paths {
				if i.patterns[p] == nil {
					i.patterns[p] = Paths(p)
				}
			}
		}
	}
	return i
}

// hooks returns the hooks by which the CLI asks for instructions.
func (i *instructor) hooks() map[string]any {
	hooks := map[string]any{}
	add := func(event string, matcher any, n int) {
		hooks[event] = []map[string]any{{"matcher": matcher, "hookCallbackIds": slices.Repeat([]string{"tell"}, n)}}
	}
	if always := i.spec.always(); always != "" {
		add("SubagentStart", nil, len(pieces(always)))
	}
	n := 0
	for _, r := range i.spec.Instructions {
		for _, t := range r.Texts {
			if len(t.Paths) > 0 {
				n += len(pieces(t.Text))
			}
		}
	}
	if n > 0 {
		add("PostToolUse", "Read|Edit|Write|NotebookEdit", min(n, maxPieces))
		add("PreCompact", nil, 1)
	}
	return hooks
}

// instructing are the events of the hooks that an instructor answers.
var instructing = []string{"PostToolUse", "PreCompact", "SubagentStart"}

// answer answers a hook.
func (i *instructor) answer(ctx context.Context, in protocol.HookInput) any {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch in.Event {
	case "PreCompact": // the conversation loses what it was told
		maps.DeleteFunc(i.told, func(key string, _ bool) bool { return strings.HasPrefix(key, in.Agent+"\x00") })
		delete(i.left, in.Agent)
		return map[string]any{}
	case "SubagentStart":
		i.tell(in.Agent, "", i.spec.always())
	case "PostToolUse":
		i.touch(ctx, in)
	}
	due := i.left[in.Agent]
	if len(due) == 0 {
		return map[string]any{}
	}
	i.left[in.Agent] = due[1:]
	return map[string]any{"hookSpecificOutput": map[string]any{
		"hookEventName": in.Event, "additionalContext": due[0],
	}}
}

// touch finds the texts about the file of a call.
func (i *instructor) touch(ctx context.Context, in protocol.HookInput) {
	var file struct {
		Path     string `json:"file_path"`
		Notebook string `json:"notebook_path"`
	}
	if json.Unmarshal(in.Input, &file) != nil {
		return
	}
	name := file.Path + file.Notebook
	if !filepath.IsAbs(name) {
		name = filepath.Join(i.spec.start(), name)
	}
	if below, err := filepath.Rel(i.spec.SeenAs, name); i.spec.SeenAs != "" && err == nil && filepath.IsLocal(below) {
		name = filepath.Join(i.spec.Dir, below)
	}
	for _, r := range i.spec.Instructions {
		below, err := filepath.Rel(r.Dir, name)
		if err != nil || !filepath.IsLocal(below) {
			continue
		}
		for _, t := range r.Texts {
			if slices.ContainsFunc(t.Paths, func(p string) bool {
				return ctx.Err() == nil && i.patterns[p].MatchString(below)
			}) {
				i.tell(in.Agent, r.Repo+":"+t.Name, "Contents of "+t.Name+" of "+r.Repo+
					", instructions about this file from the base branch:\n\n"+t.Text)
			}
		}
	}
}

// tell puts a text among those that an agent gets, once.
func (i *instructor) tell(agent, name, text string) {
	if key := agent + "\x00" + name; !i.told[key] {
		i.told[key] = true
		i.left[agent] = append(i.left[agent], pieces(text)...)
	}
}

// pieces cuts a text into numbered pieces, at ends of lines where possible.
func pieces(text string) (all []string) {
	line, _, _ := strings.Cut(strings.TrimSpace(text[:min(len(text), maxTitle)]), "\n")
	for len(text) > maxPiece {
		end := strings.LastIndexByte(text[:maxPiece], '\n') + 1
		if end < maxPiece/2 {
			end = len(strings.ToValidUTF8(text[:maxPiece], ""))
		}
		all, text = append(all, text[:end]), text[end:]
	}
	if all = append(all, text); len(all) > 1 { // the CLI asks for several at once, so they may arrive in any order
		for n := range all {
			all[n] = fmt.Sprintf("(Part %d of %d of the text that begins with %q)\n", n+1, len(all), line) + all[n]
		}
	}
	return all
}
