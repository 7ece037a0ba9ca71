// Package environment describes what the runs of a repository need in addition to its files, and how their work is
// proposed.
//
// A repository declares it in [File] on its base branch, and an operator under repositories in errand.yaml, which wins.
// Package environment reads and checks declarations. It runs nothing and keeps no state, so its functions may be called
// from any goroutine. Of errand it imports only internal/argument and internal/hostlist.
package environment

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/errand-fleet/errand/internal/hostlist"
)

// File is where a repository declares its environment, among its other settings, unless it has another of [Files].
const File = ".github/errand.yml"

// Files are the names that the file may have, as YAML has two endings. The first that exists counts.
var Files = []string{File, ".github/errand.yaml"}

// MaxFile is the size of the largest file that is read, in bytes. Half a file may mean something else than the whole.
const MaxFile = 64 << 10

// Bounds of a declaration.
const (
	maxVariables = 100
	maxValue     = 4096 // bytes
	maxList      = 50
)

// Declaration is what a repository or an operator declares. The zero value declares nothing. The tags of its fields
// explain them, also to operators in docs/settings.md.
type Declaration struct {
	Env          map[string]string `yaml:"env" hidden:"all" help:"Variables for the agent's commands and the repository's checks. They are no secrets."`
	Setup        Lines             `yaml:"setup" hidden:"all" help:"Lines of a script for bash that prepares the home and the clone, once for all runs with the same environment. It ends at the first command that fails."`
	Start        Lines             `yaml:"start" hidden:"all" help:"Lines of a script that runs before each run and each check, for services. It ends at the first command that fails."`
	Locks        Names             `yaml:"locks" default:"lock files at the root" help:"Files and directories of the repository. If one changes, the set-up runs again."`
	Path         Names             `yaml:"path" help:"Directories that come first in a run's PATH: below the home with ~/, otherwise in the clone."`
	Tools        map[string]string `yaml:"tools" help:"Versions of tools by their names in mise."`
	Egress       hostlist.List     `yaml:"egress" default:"the fleet's" help:"The hosts that set-up, runs and checks reach. What a repository declares adds to the list of the fleet; what errand.yaml declares replaces it."`
	PullRequests PullRequests      `yaml:"pull_requests" help:"How errand opens pull requests."`

	RunChoice `yaml:",inline"`
}

// Lines is a list of texts. In YAML one text may stand for a list of it, but no word like no or off, with which people
// switch something off.
type Lines []string

// UnmarshalYAML reads a list or a text.
func (l *Lines) UnmarshalYAML(n *yaml.Node) error {
	text := strings.TrimSpace(n.Value)
	if n.ShortTag() == "!!str" && text != "" && !isSwitch(n) {
		*l = Lines{text}
		return nil
	}
	return n.Decode((*[]string)(l))
}

// isSwitch reports whether a scalar is a word for on or off.
func isSwitch(n *yaml.Node) bool { return n.Decode(new(bool)) == nil }

// Names is a list of names, for which one text may stand as well. A text with a comma may not: whether it is one name
// or several can only be guessed.
type Names []string

// UnmarshalYAML reads a list or a text.
func (l *Names) UnmarshalYAML(n *yaml.Node) error {
	if strings.Contains(n.Value, ",") {
		return n.Decode((*[]string)(l))
	}
	return (*Lines)(l).UnmarshalYAML(n)
}

// WrongType rewrites an error of package yaml about a type, which names types of Go, for people.
func WrongType(e string) string { // "line 3: cannot unmarshal !!seq into map[string]string"
	line, _, _ := strings.Cut(e, ":")
	line = "L" + strings.TrimPrefix(line, "l") + ": the value has the wrong type"
	if strings.HasSuffix(e, " into []string") {
		line += "; write a list, such as [a, b]"
	}
	return line + "."
}

// DefaultLocks are files at the root of a repository that name what it depends on.
var DefaultLocks = []string{
	".go-version", ".java-version", ".mise.toml", ".node-version", ".nvmrc", ".python-version", ".ruby-version",
	".tool-versions", "Cargo.lock", "Gemfile.lock", "Pipfile.lock", "build.gradle", "build.gradle.kts", "bun.lock",
	"composer.lock", "go.mod", "go.sum", "gradle.lockfile", "mise.toml", "package-lock.json", "package.json",
	"pnpm-lock.yaml", "poetry.lock", "pom.xml", "pyproject.toml", "requirements-dev.txt", "requirements.txt",
	"rust-toolchain.toml", "uv.lock", "yarn.lock",
}

// Parse reads a declaration from the content of [File] and ignores all other settings. It leaves out invalid parts and
// returns a sentence about each of them.
func Parse(data []byte) (d Declaration, wrong []string) {
	err := yaml.Unmarshal(data, &d)
	if te, ok := errors.AsType[*yaml.TypeError](err); ok {
		for _, e := range te.Errors {
			wrong = append(wrong, WrongType(e))
		}
	} else if err != nil && !errors.Is(err, io.EOF) {
		return Declaration{}, []string{"The file is not YAML."}
	}
	if d.Egress.Mode == hostlist.Any || d.Egress.Mode == hostlist.Learn {
		wrong = append(wrong, fmt.Sprintf("egress: only the operator can set %q.", d.Egress.Mode))
		d.Egress = hostlist.List{}
	}
	if len(d.Egress.Private) > 0 {
		wrong = append(wrong, "egress: only the operator can list private hosts.")
		d.Egress.Private = nil
	}
	d, more := d.Checked()
	return d, append(wrong, more...)
}

// Checked returns d without its invalid parts, and a sentence about each of them.
func (d Declaration) Checked() (Declaration, []string) {
	var wrong []string
	kept := maps.Clone(d.Env)
	for n, name := range slices.Sorted(maps.Keys(d.Env)) {
		complaints := len(wrong)
		switch value, why := d.Env[name], CheckName(name); {
		case why != "":
			wrong = append(wrong, "env: "+why+".")
		case len(value) > maxValue || strings.ContainsRune(value, 0):
			wrong = append(wrong, fmt.Sprintf("env: the value of %s has a NUL byte or more than %d bytes.",
				name, maxValue))
		case n >= maxVariables:
			wrong = append(wrong, fmt.Sprintf("env: %s is one of more than %d variables.", name, maxVariables))
		}
		if len(wrong) > complaints {
			delete(kept, name)
		}
	}
	d.Env = kept
	maps.DeleteFunc(d.Tools, func(tool, version string) bool {
		bad := !toolName.MatchString(tool) || !toolVersion.MatchString(version)
		if bad {
			wrong = append(wrong, fmt.Sprintf("tools: %.100q cannot be used.", tool+": "+version))
		}
		return bad
	})
	for _, problem := range d.Egress.Problems() {
		wrong = append(wrong, "egress: "+problem)
	}
	d.Egress = d.Egress.Valid()
	var more []string
	d.PullRequests, more = d.PullRequests.checked()
	wrong = append(wrong, more...)
	d.RunChoice, more = d.checkedChoice()
	wrong = append(wrong, more...)
	return d, append(wrong, d.dropBadLists()...)
}

// dropBadLists empties each list that has an entry that cannot be used, and says which and why. A part of a list may
// mean something else than the whole.
func (d *Declaration) dropBadLists() (wrong []string) {
	lists := d.lists()
	for i, list := range []struct {
		name string
		fits func(string) bool
	}{
		{"setup", func(line string) bool { return !strings.ContainsRune(line, 0) }},
		{"start", func(line string) bool { return !strings.ContainsRune(line, 0) }},
		{"locks", func(name string) bool {
			return filepath.IsLocal(name) && !strings.ContainsAny(name, "\n\x00")
		}},
		{"path", func(dir string) bool {
			return filepath.IsLocal(strings.TrimPrefix(dir, "~/")) && !strings.ContainsAny(dir, ":\n\x00")
		}},
	} {
		complaints, values := len(wrong), lists[i]
		for _, value := range *values {
			if len(value) > maxValue || !list.fits(value) {
				wrong = append(wrong, fmt.Sprintf("%s: %.100q cannot be used.", list.name, value))
			}
		}
		if len(*values) > maxList {
			wrong = append(wrong, fmt.Sprintf("%s: the list has more than %d entries.", list.name, maxList))
		}
		if len(wrong) > complaints {
			*values = nil
		}
	}
	return wrong
}

// CheckName returns what is wrong with the name of a variable, or "".
func CheckName(name string) string {
	switch {
	case !variable.MatchString(name):
		return fmt.Sprintf("%.100q is not the name of a variable", name)
	case reserved.MatchString(name):
		return name + " is set by errand"
	}
	return ""
}

// Under returns d with everything that the operator declares, which wins: variables one by one, lists as a whole. Reach
// does the same for Egress. The RunChoice remains that of d.
func (d Declaration) Under(operator Declaration) Declaration {
	env := map[string]string{}
	maps.Copy(env, d.Env)
	maps.Copy(env, operator.Env)
	d.Env = env
	if operator.Tools != nil {
		d.Tools = operator.Tools
	}
	d.PullRequests = d.PullRequests.under(operator.PullRequests)
	own := d.lists()
	for i, list := range operator.lists() {
		if *list != nil {
			*own[i] = *list
		}
	}
	return d
}

// lists returns the lists of d, which are replaced as a whole.
func (d *Declaration) lists() []*[]string {
	return []*[]string{
		(*[]string)(&d.Setup), (*[]string)(&d.Start), (*[]string)(&d.Locks), (*[]string)(&d.Path),
	}
}

// LockFiles returns the names of the files and directories that d depends on.
func (d Declaration) LockFiles() []string {
	if d.Locks == nil {
		return DefaultLocks
	}
	return d.Locks
}

// Key identifies what a set-up of d leaves for a repository. versions are those of the lock files, in order.
func (d Declaration) Key(repo string, versions []string) string {
	text, err := json.Marshal([]any{repo, d.Env, d.Setup, d.Path, d.LockFiles(), versions})
	if err != nil {
		panic("marshal an environment: " + err.Error()) // strings can be marshalled
	}
	return fmt.Sprintf("%x", sha256.Sum256(text))[:32]
}

// Reach returns which hosts the runs reach, given what the operator declares for the repository and for the fleet. The
// repository's own list adds to that of the fleet, and has no effect if the operator declares one for the repository.
func (d Declaration) Reach(operator, fleet hostlist.List) hostlist.List {
	switch {
	case operator.Declared():
		return operator
	case d.Egress.Mode == hostlist.None:
		return d.Egress
	}
	return fleet.Plus(d.Egress.Hosts)
}

// The names and versions of tools. Names with a backend of mise, such as npm:prettier, belong in its own files.
var (
	toolName    = regexp.MustCompile(`^[a-z][a-z0-9-]{0,49}$`)
	toolVersion = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]{0,49}$`)
)

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,99}$`)

// reserved matches variables that errand sets, and those with which a declaration could change the CLI itself instead
// of the commands that it runs.
var reserved = regexp.MustCompile(`^(?i:ERRAND_.*|ANTHROPIC_.*|CLAUDE.*|MCP_.*|DISABLE_.*|LD_.*|BUN_.*|NODE_OPTIONS|NODE_EXTRA_CA_CERTS|` +
	`SSL_CERT_.*|(HTTPS?|ALL|NO)_PROXY|HOME|PATH|SHELL|TMPDIR|TERM|USER|LOGNAME|BASH_ENV|ENV)$`)
