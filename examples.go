// Package errand embeds the example configuration files.
package errand

import (
	_ "embed" // the examples
	"regexp"
	"strings"
)

// Env is .env.example, which explains every environment variable.
//
//go:embed .env.example
var Env string

// YAML is errand.example.yaml, which explains every section of errand.yaml.
//
//go:embed errand.example.yaml
var YAML string

// Section is a part of Env.
type Section struct {
	Title     string // such as "Slack: optional"
	Variables []Variable
}

// Variable is an environment variable in Env.
type Variable struct {
	Name  string
	About string // the first sentence of its explanation
}

var (
	sectionLine  = regexp.MustCompile(`^# ---- (.*?) -+$`)
	variableLine = regexp.MustCompile(`^(?:# )?([A-Z][A-Z0-9_]+)=`)
	sentence     = regexp.MustCompile("^(.+?\\.) [A-Z0-9`]")
)

// Sections returns the variables that Env explains, in its order. Variables below one comment share it.
func Sections() (list []Section) {
	about, comment := "", []string{}
	for line := range strings.Lines(Env) {
		line = strings.TrimRight(line, "\n")
		if m := sectionLine.FindStringSubmatch(line); m != nil {
			list, comment = append(list, Section{Title: m[1]}), nil
			continue
		}
		m := variableLine.FindStringSubmatch(line)
		if m == nil {
			comment = append(comment, strings.TrimPrefix(line, "# "))
			continue
		}
		if len(comment) > 0 {
			about, comment = strings.TrimSpace(strings.Join(comment, " ")), nil
			if first := sentence.FindStringSubmatch(about); first != nil {
				about = first[1]
			}
		}
		last := &list[len(list)-1]
		last.Variables = append(last.Variables, Variable{
			m[1], strings.ReplaceAll(strings.TrimSuffix(about, ":"), "`", ""),
		})
	}
	return list
}
