package environment

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// DevcontainerFiles are where a repository may describe a development container. The first that has a set-up counts.
var DevcontainerFiles = []string{".devcontainer/devcontainer.json", ".devcontainer.json"}

// foreign are keys of a devcontainer.json that change what its commands find, and have no counterpart here.
var foreign = strings.Fields("build dockerComposeFile dockerFile image initializeCommand mounts postAttachCommand " +
	"runArgs workspaceFolder workspaceMount")

// ParseDevcontainer reads a declaration from the content of a devcontainer.json: commands that run when a container is
// created are the set-up, after the features that are scripts of the repository, and those that run when it starts come
// before each run. name is the file's, and read returns the content of another file of the repository, or "".
// ParseDevcontainer returns a sentence about everything that it leaves out.
func ParseDevcontainer(data []byte, name string, read func(name string) string) (d Declaration, wrong []string) {
	plain, err := hujson.Standardize(append(data, '\n')) // which must follow a comment
	all := map[string]any{}
	if err != nil || json.Unmarshal(plain, &all) != nil {
		return Declaration{}, []string{"The file is not an object of JSON with comments."}
	}
	left := slices.DeleteFunc(slices.Clone(foreign), func(key string) bool { return all[key] == nil })
	if len(left) > 0 {
		wrong = append(wrong, strings.Join(left, ", ")+
			" cannot be used: runs have the tools of the worker, and what the set-up installs.")
	}
	features, _ := all["features"].(map[string]any)
	for _, feature := range slices.Sorted(maps.Keys(features)) {
		dir := path.Join(path.Dir(name), feature)
		if !strings.HasPrefix(feature, "./") || dir == "." || !filepath.IsLocal(dir) || read(dir+"/install.sh") == "" {
			wrong = append(wrong,
				fmt.Sprintf("features: %.100q is not a directory of the repository with an install.sh.", feature))
			continue
		}
		d.Setup = append(d.Setup, featureLine(dir, features[feature], read(dir+"/devcontainer-feature.json")))
		d.Locks = append(d.Locks, dir)
	}
	for _, key := range []string{"onCreateCommand", "updateContentCommand", "postCreateCommand"} {
		d.Setup = append(d.Setup, commandLines(all[key])...)
	}
	d.Start, d.Env = commandLines(all["postStartCommand"]), map[string]string{}
	for _, key := range []string{"containerEnv", "remoteEnv"} {
		values, _ := all[key].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(values)) {
			if value, ok := values[name].(string); ok && !strings.Contains(value, "${") {
				d.Env[name] = value
			} else {
				wrong = append(wrong, fmt.Sprintf("%s: the value of %.100q is not a plain text.", key, name))
			}
		}
	}
	d, more := d.Checked()
	if d.Locks != nil { // after the check: its bound is for what the repository names
		d.Locks = append(d.Locks, DefaultLocks...)
	}
	return d, append(wrong, more...)
}

// featureLine returns the line that installs the feature in a directory of the repository. Its options, with the
// defaults of its manifest, are variables of its script, as containers.dev/implementors/features says.
func featureLine(dir string, chosen any, manifest string) string {
	var known struct {
		Options map[string]struct{ Default any }
	}
	plain, _ := hujson.Standardize([]byte(manifest + "\n"))
	_ = json.Unmarshal(plain, &known) // without it, there are no defaults
	values := map[string]any{}
	for name, option := range known.Options {
		values[name] = option.Default
	}
	options, ok := chosen.(map[string]any)
	if !ok { // the short form
		options = map[string]any{"version": chosen}
	}
	maps.Copy(values, options)
	var line strings.Builder
	line.WriteString("(cd " + quoted(dir))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if values[name] != nil {
			variable := strings.TrimLeft(notInVariable.ReplaceAllString(strings.ToUpper(name), "_"), "_0123456789")
			line.WriteString(" && export " + cmp.Or(variable, "_") + "=" + quoted(fmt.Sprint(values[name])))
		}
	}
	return line.String() + ` && export _REMOTE_USER="$(id -un)" _REMOTE_USER_HOME="$HOME" && bash ./install.sh)`
}

var notInVariable = regexp.MustCompile(`[^A-Z0-9_]`)

// quoted returns a word as a shell has to read it.
func quoted(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// commandLines returns the lines of a command: a text for a shell, a list of a program and its arguments, or several of
// them by name, which run one after the other.
func commandLines(command any) (lines []string) {
	switch c := command.(type) {
	case string: // in a subshell: the next command begins in the clone again
		return []string{"(" + c + "\n)"}
	case []any:
		var words []string
		for _, word := range c {
			words = append(words, quoted(fmt.Sprint(word)))
		}
		return []string{strings.Join(words, " ")}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(c)) {
			lines = append(lines, commandLines(c[name])...)
		}
	}
	return lines
}
