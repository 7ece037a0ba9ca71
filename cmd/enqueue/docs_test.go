package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// docs/cli.md has every command with every flag, and no others.
func TestDocsHaveEveryCommand(t *testing.T) {
	t.Parallel()
	doc := read(t, "..", "..", "docs", "cli.md")
	known := map[string]bool{}
	walk(newRoot(newTerminal(world{getenv: func(string) string { return "" }})), func(c *cobra.Command) {
		_, name, _ := strings.Cut(c.CommandPath(), " ")
		if c.Name() != "list" && !regexp.MustCompile("(?m)^\\|.*`"+name+"[ `]").MatchString(doc) {
			t.Errorf("%s is not in the table", name)
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) { known[f.Name] = true })
	})
	told := map[string]bool{}
	for _, code := range regexp.MustCompile("`[^`\\n]+`").FindAllString(doc, -1) {
		for word := range strings.FieldsSeq(strings.Trim(code, "`")) {
			if name, ok := strings.CutPrefix(word, "--"); ok && name != "" {
				told[name] = true
			}
		}
	}
	for name := range known {
		if !told[name] {
			t.Errorf("--%s is missing", name)
		}
	}
	for name := range told {
		if !known[name] {
			t.Errorf("there is no --%s", name)
		}
	}
}
