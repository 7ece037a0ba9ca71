package config

import (
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

var checksum = regexp.MustCompile(`^[0-9a-f]{64}$`)

func (v routingCheck) plugins(r Routing) {
	seen := map[string]bool{}
	for i, p := range r.Plugins {
		path := []string{"plugins", strconv.Itoa(i + 1)}
		if p.Path == "" {
			v.add("has no path", "write that of the directory, from / on", path...)
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
