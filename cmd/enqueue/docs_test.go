package main

import (
	"flag"
	"regexp"
	"strings"
	"testing"
)

// docs/cli.md has every command with every flag, and no others.
func TestDocsHaveEveryCommand(t *testing.T) {
	t.Parallel()
	doc := read(t, "..", "..", "docs", "cli.md")
	known := map[string]bool{}
	for _, c := range commands() {
		if !regexp.MustCompile("(?m)^\\|.*`" + c.name + "[ `]").MatchString(doc) {
			t.Errorf("%s is not in the table", c.name)
		}
		flags, _ := c.declare(newTerminal(world{getenv: func(string) string { return "" }}))
		flags.VisitAll(func(f *flag.Flag) { known[f.Name] = true })
	}
	told := map[string]bool{}
	for _, code := range regexp.MustCompile("`[^`\\n]+`").FindAllString(doc, -1) {
		for word := range strings.FieldsSeq(strings.Trim(code, "`")) {
			if name, ok := strings.CutPrefix(word, "-"); ok && strings.Trim(name, "-") != "" {
				told[name] = true
			}
		}
	}
	for name := range known {
		if !told[name] {
			t.Errorf("-%s is missing", name)
		}
	}
	for name := range told {
		if !known[name] {
			t.Errorf("there is no -%s", name)
		}
	}
}
