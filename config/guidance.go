package config

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/errand-fleet/errand/internal/argument"
)

// maxInstructions bounds each text for agents, in bytes: each run gets up to seven of them.
const maxInstructions = 20 << 10

// guidance checks what runs are told, and the models of channels. Those of repositories are checked with the rest of
// what they declare.
func (v routingCheck) guidance(r Routing) {
	v.instructions(r.Instructions)
	for _, name := range slices.Sorted(maps.Keys(r.Repositories)) {
		v.instructions(r.Repositories[name].Instructions, "repositories", name)
	}
	for _, id := range slices.Sorted(maps.Keys(r.Channels)) {
		one, path := r.Channels[id], []string{"channels", id}
		v.instructions(one.Instructions, path...)
		for key, word := range map[string]string{"model": one.Model, "effort": one.Effort} {
			if word != "" && !argument.Valid(word) {
				v.add(fmt.Sprintf("is %q", word), "write a name that the CLI takes, like opus or high",
					slices.Concat(path, []string{key})...)
			}
		}
	}
}

func (v routingCheck) instructions(text string, path ...string) {
	if len(text) > maxInstructions || strings.ContainsRune(text, 0) {
		v.add(fmt.Sprintf("has a NUL byte or more than %d KiB", maxInstructions>>10),
			"shorten it, or make the rest a skill under plugins", slices.Concat(path, []string{"instructions"})...)
	}
}

var checksum = regexp.MustCompile(`^[0-9a-f]{64}$`)

func (v routingCheck) plugins(r Routing) {
	seen := map[string]bool{}
	for i, p := range r.Plugins {
		path := []string{"plugins", strconv.Itoa(i + 1)}
		if !filepath.IsAbs(p.Path) {
			v.add(fmt.Sprintf("is %q, which is not an absolute path", p.Path), "write it from / on",
				append(path, "path")...)
		}
		name := strings.ToLower(filepath.Base(p.Path))
		if seen[name] {
			v.add("has the name of another one", "rename the directory: its skills are called by its name", path...)
		}
		seen[name] = true
		if !checksum.MatchString(p.SHA256) {
			v.add("has no SHA-256 of 64 lower-case hexadecimal digits",
				"write sha256: with what the command in docs/configure.md prints", path...)
		}
	}
}
