package environment

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// DevcontainerFiles are where a repository may describe a development container. The first that exists counts.
var DevcontainerFiles = []string{".devcontainer/devcontainer.json", ".devcontainer.json"}

// foreign are keys of a devcontainer.json that change what its commands find, and have no counterpart here.
var foreign = strings.Fields("build dockerComposeFile dockerFile features image initializeCommand mounts " +
	"postAttachCommand runArgs workspaceFolder workspaceMount")

// ParseDevcontainer reads a declaration from the content of a devcontainer.json: commands that run when a container is
// created are the set-up, and those that run when it starts come before each run. It returns a sentence about all
// that it leaves out.
func ParseDevcontainer(data []byte) (d Declaration, wrong []string) {
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
	return d, append(wrong, more...)
}

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
