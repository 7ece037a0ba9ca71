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

// Text in the documents names only targets of the Makefile and commands of enqueue that exist. TestDocsCommandsRun runs
// what is in blocks.
func TestDocsNameWhatExists(t *testing.T) {
	t.Parallel()
	makefile := read(t, repoRoot, "Makefile")
	known := map[string]bool{"serve": true, "help": true}
	for _, c := range commands() {
		known[strings.Fields(c.name)[0]] = true
	}
	for _, file := range documents(t) {
		if file == "docs/roadmap.md" { // names what does not exist yet
			continue
		}
		for _, m := range regexp.MustCompile("`(make|enqueue) ([a-z][a-z-]*)").FindAllStringSubmatch(read(t, repoRoot, file), -1) {
			if m[1] == "make" && !strings.Contains(makefile, "\n"+m[2]+":") || m[1] == "enqueue" && !known[m[2]] {
				t.Errorf("%s: there is no %s %s", file, m[1], m[2])
			}
		}
	}
}
